"""Reports of a shop that lends films."""

from __future__ import annotations

from tests.select.corpora.model import PublicSql

SAKILA = PublicSql(
    "sakila",
    "MySQL's Sakila and its PostgreSQL version Pagila: their views, and public exercises on them",
    {
        "actor": {"actor_id": "int", "first_name": "string NICK ED JENNIFER", "last_name": "string CHASE DAVIS"},
        "film": {
            "film_id": "int",
            "title": "string ALIEN BOOGIE CHAMBER",
            "length": "int",
            "rating": "string G PG R",
            "rental_rate": "decimal(4, 2)",
            "replacement_cost": "decimal(5, 2)",
        },
        "film_actor": {"actor_id": "int", "film_id": "int"},
        "category": {"category_id": "int", "name": "string Action Comedy Family"},
        "film_category": {"film_id": "int", "category_id": "int"},
        "inventory": {"inventory_id": "int", "film_id": "int", "store_id": "int"},
        "rental": {
            "rental_id": "int",
            "rental_date": "timestamp",
            "inventory_id": "int",
            "customer_id": "int",
            "return_date": "timestamp",
        },
        "payment": {"payment_id": "int", "customer_id": "int", "rental_id": "int", "amount": "decimal(5, 2)"},
        "customer": {
            "customer_id": "int",
            "first_name": "string MARY LINDA",
            "last_name": "string SMITH BROWN",
            "store_id": "int",
            "active": "bool",
        },
        "store": {"store_id": "int", "city": "string Lethbridge Woodridge"},
    },
    {
        "actors who share a last name": """
            SELECT last_name, COUNT(*) AS actors FROM actor GROUP BY last_name HAVING COUNT(*) >= 2""",
        "actors of each film": """
            SELECT f.title, COUNT(fa.actor_id) AS actors
            FROM film f LEFT JOIN film_actor fa ON f.film_id = fa.film_id GROUP BY f.film_id, f.title""",
        "copies of a film": """
            SELECT f.title, (SELECT COUNT(*) FROM inventory i WHERE i.film_id = f.film_id) AS copies
            FROM film f""",
        "paid by each customer": """
            SELECT c.last_name, c.first_name, SUM(p.amount) AS paid
            FROM customer c JOIN payment p USING (customer_id)
            GROUP BY c.customer_id, c.last_name, c.first_name ORDER BY c.last_name""",
        "actors in one film": """
            SELECT first_name, last_name FROM actor
            WHERE actor_id IN (SELECT actor_id FROM film_actor
                               WHERE film_id IN (SELECT film_id FROM film WHERE title = 'ALIEN'))""",
        "sales by category": """
            SELECT c.name AS category, SUM(p.amount) AS total_sales
            FROM payment p INNER JOIN rental r ON p.rental_id = r.rental_id
            INNER JOIN inventory i ON r.inventory_id = i.inventory_id
            INNER JOIN film f ON i.film_id = f.film_id
            INNER JOIN film_category fc ON f.film_id = fc.film_id
            INNER JOIN category c ON fc.category_id = c.category_id
            GROUP BY c.name ORDER BY total_sales DESC""",
        "films that are lent most": """
            SELECT f.title, COUNT(*) AS rentals FROM rental r
            JOIN inventory i ON r.inventory_id = i.inventory_id JOIN film f ON f.film_id = i.film_id
            GROUP BY f.title ORDER BY rentals DESC LIMIT 10""",
        "films not in stock": """
            SELECT title FROM film WHERE film_id NOT IN (SELECT film_id FROM inventory WHERE film_id IS NOT NULL)""",
        "rentals that are open": """
            SELECT c.last_name, f.title, r.rental_date FROM rental r
            JOIN customer c ON c.customer_id = r.customer_id JOIN inventory i ON i.inventory_id = r.inventory_id
            JOIN film f ON f.film_id = i.film_id WHERE r.return_date IS NULL AND c.active""",
        "customers who lent action but not comedy": """
            SELECT r.customer_id FROM rental r JOIN inventory i USING (inventory_id)
            JOIN film_category fc USING (film_id) JOIN category c USING (category_id) WHERE c.name = 'Action'
            EXCEPT
            SELECT r.customer_id FROM rental r JOIN inventory i USING (inventory_id)
            JOIN film_category fc USING (film_id) JOIN category c USING (category_id) WHERE c.name = 'Comedy'""",
        "revenue by store and rating, with totals": """
            SELECT i.store_id, f.rating, SUM(p.amount) AS revenue FROM payment p
            JOIN rental r ON r.rental_id = p.rental_id JOIN inventory i ON i.inventory_id = r.inventory_id
            JOIN film f ON f.film_id = i.film_id GROUP BY ROLLUP(i.store_id, f.rating)""",
        "films cheaper than others of their rating": """
            SELECT f.title, f.rating, f.rental_rate FROM film f
            WHERE f.rental_rate < (SELECT AVG(g.rental_rate) FROM film g WHERE g.rating = f.rating)""",
        "category of the longest films": """
            SELECT c.name, AVG(f.length) AS average FROM category c
            JOIN film_category fc ON fc.category_id = c.category_id JOIN film f ON f.film_id = fc.film_id
            GROUP BY c.name HAVING AVG(f.length) > (SELECT AVG(length) FROM film)""",
    },
)
