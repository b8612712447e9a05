"""Models of a shop that sells jaffles."""

from __future__ import annotations

from tests.select.corpora.model import PublicSql

JAFFLE_SHOP = PublicSql(
    "jaffle shop",
    "the models of dbt's jaffle_shop (dbt-labs/jaffle_shop and dbt-labs/jaffle-shop), written out without Jinja",
    {
        "raw_customers": {"id": "int", "first_name": "string Michael Shawn Kathleen", "last_name": "string P. M."},
        "raw_orders": {
            "id": "int",
            "user_id": "int",
            "order_date": "date",
            "status": "string placed returned completed",
        },
        "raw_payments": {
            "id": "int",
            "order_id": "int",
            "payment_method": "string coupon credit_card gift_card",
            "amount": "int",
        },
        "raw_items": {"id": "int", "order_id": "int", "sku": "string JAF-1 BEV-1"},
        "raw_products": {"sku": "string JAF-1 BEV-1", "type": "string jaffle beverage", "price": "int"},
        "raw_supplies": {"id": "int", "sku": "string JAF-1 BEV-1", "cost": "int", "perishable": "bool"},
    },
    {
        "customers": """
            WITH customers AS (SELECT id AS customer_id, first_name, last_name FROM raw_customers),
            orders AS (SELECT id AS order_id, user_id AS customer_id, order_date, status FROM raw_orders),
            payments AS (SELECT id AS payment_id, order_id, payment_method, amount / 100 AS amount FROM raw_payments),
            customer_orders AS (
                SELECT customer_id, MIN(order_date) AS first_order, MAX(order_date) AS most_recent_order,
                       COUNT(order_id) AS number_of_orders
                FROM orders GROUP BY customer_id),
            customer_payments AS (
                SELECT orders.customer_id, SUM(amount) AS total_amount
                FROM payments LEFT JOIN orders ON payments.order_id = orders.order_id GROUP BY orders.customer_id),
            final AS (
                SELECT customers.customer_id, customers.first_name, customers.last_name, customer_orders.first_order,
                       customer_orders.most_recent_order, customer_orders.number_of_orders,
                       customer_payments.total_amount AS customer_lifetime_value
                FROM customers
                LEFT JOIN customer_orders ON customers.customer_id = customer_orders.customer_id
                LEFT JOIN customer_payments ON customers.customer_id = customer_payments.customer_id)
            SELECT * FROM final""",
        "orders": """
            WITH order_payments AS (
                SELECT order_id,
                       SUM(CASE WHEN payment_method = 'credit_card' THEN amount ELSE 0 END) AS credit_card_amount,
                       SUM(CASE WHEN payment_method = 'coupon' THEN amount ELSE 0 END) AS coupon_amount,
                       SUM(CASE WHEN payment_method = 'gift_card' THEN amount ELSE 0 END) AS gift_card_amount,
                       SUM(amount) AS total_amount
                FROM raw_payments GROUP BY order_id)
            SELECT orders.id AS order_id, orders.user_id AS customer_id, orders.order_date, orders.status,
                   order_payments.credit_card_amount, order_payments.coupon_amount, order_payments.gift_card_amount,
                   order_payments.total_amount AS amount
            FROM raw_orders AS orders LEFT JOIN order_payments ON orders.id = order_payments.order_id""",
        "order items": """
            WITH supplies AS (SELECT sku, SUM(cost) AS supply_cost FROM raw_supplies GROUP BY 1)
            SELECT i.id AS order_item_id, i.order_id, p.type, p.price, supplies.supply_cost,
                   p.type = 'jaffle' AS is_food_item
            FROM raw_items i LEFT JOIN raw_products p ON i.sku = p.sku LEFT JOIN supplies ON i.sku = supplies.sku""",
        "summary of orders": """
            SELECT o.id AS order_id, SUM(s.cost) AS order_cost, SUM(p.price) AS order_items_subtotal,
                   COUNT(i.id) AS count_order_items,
                   SUM(CASE WHEN p.type = 'jaffle' THEN 1 ELSE 0 END) AS count_food_items
            FROM raw_orders o LEFT JOIN raw_items i ON o.id = i.order_id LEFT JOIN raw_products p ON p.sku = i.sku
            LEFT JOIN raw_supplies s ON s.sku = i.sku GROUP BY 1""",
        "customers who came back": """
            SELECT c.id, c.first_name, CASE WHEN COUNT(DISTINCT o.id) > 1 THEN 'returning' ELSE 'new' END AS type
            FROM raw_customers c JOIN raw_orders o ON o.user_id = c.id GROUP BY c.id, c.first_name""",
        "test that totals are positive": """
            SELECT order_id, SUM(amount) AS total_amount FROM raw_payments GROUP BY 1 HAVING NOT (SUM(amount) >= 5)""",
        "test of references": """
            SELECT child.user_id AS from_field FROM (SELECT user_id FROM raw_orders WHERE user_id IS NOT NULL) child
            LEFT JOIN (SELECT id AS to_field FROM raw_customers) parent ON child.user_id = parent.to_field
            WHERE parent.to_field IS NULL""",
        "test of unique keys": """
            SELECT id AS unique_field, COUNT(*) AS n_records FROM raw_orders WHERE id IS NOT NULL
            GROUP BY id HAVING COUNT(*) > 1""",
    },
)
