"""Reports over a music shop."""

from __future__ import annotations

from tests.select.corpora.model import PublicSql

CHINOOK = PublicSql(
    "chinook",
    "the Chinook sample database (lerocha/chinook-database) and the exercises that tutorials set on it",
    {
        "artist": {"artist_id": "int", "name": "string Queen U2 Accept"},
        "album": {"album_id": "int", "title": "string Jazz Pop Balls", "artist_id": "int"},
        "track": {
            "track_id": "int",
            "name": "string Fast Restless Princess",
            "album_id": "int",
            "genre_id": "int",
            "media_type_id": "int",
            "milliseconds": "int",
            "unit_price": "decimal(10, 2)",
        },
        "genre": {"genre_id": "int", "name": "string Rock Jazz Metal"},
        "customer": {
            "customer_id": "int",
            "first_name": "string Ann Bob Eva",
            "last_name": "string Smith Jones",
            "country": "string USA Canada Brazil",
            "support_rep_id": "int",
        },
        "employee": {
            "employee_id": "int",
            "last_name": "string Peacock Park Adams",
            "title": "string Agent Manager",
            "reports_to": "int",
        },
        "invoice": {
            "invoice_id": "int",
            "customer_id": "int",
            "invoice_date": "timestamp",
            "billing_country": "string USA Canada Brazil",
            "total": "decimal(10, 2)",
        },
        "invoice_line": {
            "invoice_line_id": "int",
            "invoice_id": "int",
            "track_id": "int",
            "unit_price": "decimal(10, 2)",
            "quantity": "int",
        },
        "playlist": {"playlist_id": "int", "name": "string Music Movies"},
        "playlist_track": {"playlist_id": "int", "track_id": "int"},
    },
    {
        "customers outside the USA": """
            SELECT first_name || ' ' || last_name AS full_name, customer_id, country
            FROM customer WHERE country <> 'USA'""",
        "invoices of Brazilian customers": """
            SELECT c.first_name, c.last_name, i.invoice_id, i.invoice_date, i.billing_country
            FROM customer AS c JOIN invoice AS i ON c.customer_id = i.customer_id
            WHERE c.country = 'Brazil' ORDER BY i.invoice_date""",
        "sales by agent": """
            SELECT e.last_name, SUM(i.total) AS sales
            FROM employee e JOIN customer c ON c.support_rep_id = e.employee_id
            JOIN invoice i ON i.customer_id = c.customer_id
            WHERE e.title = 'Agent' GROUP BY e.last_name ORDER BY sales DESC""",
        "sales by country and year": """
            SELECT billing_country, EXTRACT(YEAR FROM invoice_date) AS year, SUM(total) AS sales, COUNT(*) AS invoices
            FROM invoice GROUP BY billing_country, EXTRACT(YEAR FROM invoice_date)""",
        "lines of each invoice, with its tracks": """
            SELECT l.invoice_id, t.name AS track, ar.name AS artist, l.quantity * l.unit_price AS amount
            FROM invoice_line l JOIN track t USING (track_id) JOIN album al USING (album_id)
            JOIN artist ar USING (artist_id)""",
        "five best selling tracks": """
            SELECT t.name, SUM(l.quantity) AS sold
            FROM track t INNER JOIN invoice_line l ON l.track_id = t.track_id
            GROUP BY t.name ORDER BY sold DESC LIMIT 5""",
        "playlists with the number of their tracks": """
            SELECT p.name, COUNT(pt.track_id) AS tracks
            FROM playlist p LEFT JOIN playlist_track pt ON p.playlist_id = pt.playlist_id
            GROUP BY p.playlist_id, p.name""",
        "tracks that were never bought": """
            SELECT t.track_id, t.name FROM track t
            LEFT JOIN invoice_line l ON l.track_id = t.track_id WHERE l.invoice_line_id IS NULL""",
        "customers who bought Rock": """
            SELECT DISTINCT c.first_name, c.last_name FROM customer c
            JOIN invoice i ON c.customer_id = i.customer_id
            WHERE i.invoice_id IN (SELECT l.invoice_id FROM invoice_line l JOIN track t ON l.track_id = t.track_id
                                   JOIN genre g ON t.genre_id = g.genre_id WHERE g.name LIKE 'Rock')""",
        "tracks longer than the average": """
            SELECT name, milliseconds FROM track
            WHERE milliseconds > (SELECT AVG(milliseconds) FROM track) ORDER BY milliseconds DESC""",
        "customer who spent most in each country": """
            WITH spent AS (
                SELECT c.customer_id, c.first_name, c.country, SUM(i.total) AS total
                FROM customer c JOIN invoice i ON i.customer_id = c.customer_id
                GROUP BY c.customer_id, c.first_name, c.country),
            most AS (SELECT country, MAX(total) AS total FROM spent GROUP BY country)
            SELECT s.country, s.total, s.first_name, s.customer_id
            FROM spent s JOIN most m ON m.country = s.country AND m.total = s.total""",
        "most popular genre of each country": """
            WITH bought AS (
                SELECT c.country, g.name AS genre, COUNT(*) AS purchases
                FROM invoice_line l JOIN invoice i ON i.invoice_id = l.invoice_id
                JOIN customer c ON c.customer_id = i.customer_id
                JOIN track t ON t.track_id = l.track_id JOIN genre g ON g.genre_id = t.genre_id
                GROUP BY c.country, g.name),
            ranked AS (SELECT country, genre, purchases,
                              RANK() OVER (PARTITION BY country ORDER BY purchases DESC) AS place FROM bought)
            SELECT country, genre, purchases FROM ranked WHERE place = 1""",
        "who reports to whom": """
            SELECT e.last_name AS employee, COALESCE(m.last_name, '-') AS manager
            FROM employee e LEFT JOIN employee m ON e.reports_to = m.employee_id""",
        "share of genres in revenue": """
            SELECT g.name, SUM(l.unit_price * l.quantity) AS revenue,
                   100 * SUM(CAST(l.quantity AS DOUBLE)) / (SELECT SUM(quantity) FROM invoice_line) AS percent
            FROM genre g JOIN track t ON t.genre_id = g.genre_id JOIN invoice_line l ON l.track_id = t.track_id
            GROUP BY g.name""",
    },
)
