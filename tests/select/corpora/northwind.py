"""Reports of a wholesaler."""

from __future__ import annotations

from tests.select.corpora.model import PublicSql

NORTHWIND = PublicSql(
    "northwind",
    "Microsoft's Northwind sample database (its own views among them) and public exercises on it",
    {
        "categories": {"category_id": "int", "category_name": "string Beverages Seafood Produce"},
        "suppliers": {"supplier_id": "int", "company_name": "string Exotic Tokyo", "country": "string UK Japan USA"},
        "products": {
            "product_id": "int",
            "product_name": "string Chai Tofu Konbu Pavlova",
            "supplier_id": "int",
            "category_id": "int",
            "unit_price": "decimal(10, 2)",
            "units_in_stock": "int",
            "units_on_order": "int",
            "reorder_level": "int",
            "discontinued": "bool",
        },
        "customers": {
            "customer_id": "int",
            "company_name": "string Alfreds Berglunds Chop",
            "city": "string London Lyon Bern",
            "country": "string UK France Switzerland",
        },
        "orders": {
            "order_id": "int",
            "customer_id": "int",
            "employee_id": "int",
            "order_date": "date",
            "required_date": "date",
            "shipped_date": "date",
            "ship_via": "int",
            "freight": "decimal(10, 2)",
            "ship_country": "string UK France Switzerland",
        },
        "order_details": {
            "order_id": "int",
            "product_id": "int",
            "unit_price": "decimal(10, 2)",
            "quantity": "int",
            "discount": "decimal(3, 2)",
        },
        "employees": {
            "employee_id": "int",
            "last_name": "string Davolio Fuller King",
            "first_name": "string Nancy Andrew",
            "reports_to": "int",
            "hire_date": "date",
        },
        "shippers": {"shipper_id": "int", "company_name": "string Speedy United"},
    },
    {
        "order subtotals": """
            SELECT order_id, SUM(unit_price * quantity * (1 - discount)) AS subtotal
            FROM order_details GROUP BY order_id""",
        "sales by year": """
            SELECT o.shipped_date, o.order_id, s.subtotal, YEAR(o.shipped_date) AS year
            FROM orders o JOIN (SELECT order_id, SUM(unit_price * quantity * (1 - discount)) AS subtotal
                                FROM order_details GROUP BY order_id) s ON o.order_id = s.order_id
            WHERE o.shipped_date IS NOT NULL""",
        "products above the average price": """
            SELECT product_name, unit_price FROM products
            WHERE unit_price > (SELECT AVG(unit_price) FROM products) ORDER BY unit_price DESC""",
        "current products": """
            SELECT product_id, product_name FROM products WHERE NOT discontinued ORDER BY product_name""",
        "products by category": """
            SELECT c.category_name, p.product_name, p.units_in_stock
            FROM categories c INNER JOIN products p ON c.category_id = p.category_id WHERE p.discontinued <> TRUE""",
        "customers and suppliers by city": """
            SELECT city, company_name, 'Customers' AS relationship FROM customers
            UNION SELECT country, company_name, 'Suppliers' FROM suppliers ORDER BY city, company_name""",
        "sales of each product in each quarter": """
            SELECT p.product_name, QUARTER(o.order_date) AS quarter, SUM(d.unit_price * d.quantity) AS sales
            FROM products p JOIN order_details d ON p.product_id = d.product_id JOIN orders o ON o.order_id = d.order_id
            GROUP BY p.product_name, QUARTER(o.order_date)""",
        "customers without an order": """
            SELECT c.customer_id, c.company_name FROM customers c
            WHERE NOT EXISTS (SELECT 1 FROM orders o WHERE o.customer_id = c.customer_id)""",
        "customers without an order of employee 4": """
            SELECT c.customer_id FROM customers c
            LEFT JOIN orders o ON o.customer_id = c.customer_id AND o.employee_id = 4 WHERE o.order_id IS NULL""",
        "late orders by employee": """
            SELECT e.employee_id, e.last_name, COUNT(*) AS late
            FROM orders o JOIN employees e ON e.employee_id = o.employee_id
            WHERE o.required_date <= o.shipped_date GROUP BY e.employee_id, e.last_name HAVING COUNT(*) > 1""",
        "late orders beside all orders": """
            WITH late AS (SELECT employee_id, COUNT(*) AS n FROM orders WHERE required_date <= shipped_date
                          GROUP BY employee_id),
                 every AS (SELECT employee_id, COUNT(*) AS n FROM orders GROUP BY employee_id)
            SELECT e.last_name, every.n AS orders, COALESCE(late.n, 0) AS late,
                   COALESCE(late.n, 0) / every.n AS share
            FROM employees e JOIN every ON every.employee_id = e.employee_id
            LEFT JOIN late ON late.employee_id = e.employee_id""",
        "customers by how much they bought": """
            SELECT company_name, total,
                   CASE WHEN total < 10 THEN 'low' WHEN total < 50 THEN 'medium' ELSE 'high' END AS class
            FROM (SELECT c.company_name, SUM(d.unit_price * d.quantity) AS total
                  FROM customers c JOIN orders o ON o.customer_id = c.customer_id
                  JOIN order_details d ON d.order_id = o.order_id GROUP BY c.customer_id, c.company_name) t""",
        "countries of customers and suppliers": """
            SELECT c.country AS customers, s.country AS suppliers
            FROM (SELECT DISTINCT country FROM customers) c
            FULL OUTER JOIN (SELECT DISTINCT country FROM suppliers) s ON c.country = s.country""",
        "products to order again": """
            SELECT product_name, units_in_stock + units_on_order AS available, reorder_level FROM products
            WHERE units_in_stock + units_on_order <= reorder_level AND NOT discontinued""",
        "freight by country": """
            SELECT ship_country, AVG(freight) AS average, MAX(freight) AS most FROM orders
            WHERE order_date >= DATE '2024-01-01' GROUP BY ship_country ORDER BY average DESC LIMIT 3""",
        "orders with the most lines": """
            SELECT order_id, lines FROM (SELECT order_id, COUNT(*) AS lines FROM order_details GROUP BY order_id) n
            WHERE lines = (SELECT MAX(k) FROM (SELECT COUNT(*) AS k FROM order_details GROUP BY order_id) m)""",
    },
)
