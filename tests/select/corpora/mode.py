"""Questions of product and sales analysts."""

from __future__ import annotations

from tests.select.corpora.model import PublicSql

MODE = PublicSql(
    "mode",
    "Mode's SQL tutorial: its case studies on a social network and its tables of companies, players and crimes",
    {
        "users": {
            "user_id": "int",
            "created_at": "timestamp",
            "company_id": "int",
            "language": "string english german",
            "activated_at": "timestamp",
            "state": "string active pending",
        },
        "events": {
            "user_id": "int",
            "occurred_at": "timestamp",
            "event_type": "string engagement signup_flow",
            "event_name": "string login like_message search_autocomplete search_run",
            "location": "string Germany Japan France",
            "device": "string laptop phone tablet",
        },
        "emails": {
            "user_id": "int",
            "occurred_at": "timestamp",
            "action": "string sent_weekly_digest email_open email_clickthrough",
        },
        "players": {
            "full_school_name": "string Baylor Rice",
            "player_name": "string Art Ben Cal Dan",
            "year": "string FR SO JR SR",
            "weight": "int",
            "state": "string TX CA WA",
        },
        "teams": {"school_name": "string Baylor Rice", "conference": "string East West", "division": "string FBS FCS"},
        "companies": {
            "permalink": "string a b c d",
            "name": "string Alpha Beta",
            "category_code": "string web mobile",
            "status": "string operating acquired closed",
            "state_code": "string CA NY",
        },
        "acquisitions": {
            "company_permalink": "string a b c d",
            "acquirer_permalink": "string a b c d",
            "price_amount": "int",
            "acquired_at": "date",
        },
        "investments": {
            "company_permalink": "string a b c d",
            "investor_name": "string Sequoia Accel",
            "amount": "int",
        },
    },
    {
        "weekly engagement": """
            SELECT DATE_TRUNC('week', e.occurred_at) AS week, COUNT(DISTINCT e.user_id) AS weekly_active_users
            FROM events e WHERE e.event_type = 'engagement' AND e.event_name = 'login'
            GROUP BY 1 ORDER BY 1""",
        "users by device": """
            SELECT DATE_TRUNC('week', occurred_at) AS week, COUNT(DISTINCT user_id) AS weekly_active_users,
                   COUNT(DISTINCT CASE WHEN device = 'laptop' THEN user_id ELSE NULL END) AS computer,
                   COUNT(DISTINCT CASE WHEN device IN ('phone', 'tablet') THEN user_id ELSE NULL END) AS handheld
            FROM events WHERE event_type = 'engagement' GROUP BY 1""",
        "growth of users": """
            SELECT DATE_TRUNC('day', created_at) AS day, COUNT(*) AS all_users,
                   COUNT(CASE WHEN activated_at IS NOT NULL THEN user_id ELSE NULL END) AS activated_users
            FROM users WHERE created_at >= TIMESTAMP '2024-01-01 00:00:00' GROUP BY 1 ORDER BY 1""",
        "emails by action": """
            SELECT action, COUNT(*) AS emails, COUNT(DISTINCT user_id) AS people,
                   COUNT(*) FILTER (WHERE occurred_at >= TIMESTAMP '2024-06-01 00:00:00') AS recent
            FROM emails GROUP BY action""",
        "emails that were opened": """
            SELECT e1.user_id, COUNT(*) AS sent, COUNT(e2.user_id) AS opened
            FROM emails e1 LEFT JOIN emails e2 ON e2.user_id = e1.user_id AND e2.action = 'email_open'
                 AND e2.occurred_at >= e1.occurred_at
            WHERE e1.action = 'sent_weekly_digest' GROUP BY e1.user_id""",
        "searches by users": """
            SELECT u.user_id, u.language, SUM(CASE WHEN e.event_name = 'search_run' THEN 1 ELSE 0 END) AS runs,
                   SUM(CASE WHEN e.event_name = 'search_autocomplete' THEN 1 ELSE 0 END) AS completions
            FROM users u LEFT JOIN events e ON e.user_id = u.user_id GROUP BY u.user_id, u.language""",
        "players by year and state": """
            SELECT CASE WHEN year IN ('FR', 'SO') THEN 'underclass' WHEN year IN ('JR', 'SR') THEN 'upperclass'
                        ELSE NULL END AS class_group, COUNT(*) AS players, SUM(weight) AS weight
            FROM players WHERE state = 'CA' GROUP BY 1""",
        "years as columns": """
            SELECT conference, SUM(players) AS total_players,
                   SUM(CASE WHEN year = 'FR' THEN players ELSE NULL END) AS fr,
                   SUM(CASE WHEN year = 'SR' THEN players ELSE NULL END) AS sr
            FROM (SELECT teams.conference AS conference, players.year, COUNT(*) AS players
                  FROM players players JOIN teams teams ON teams.school_name = players.full_school_name
                  GROUP BY 1, 2) sub
            GROUP BY 1 ORDER BY 2 DESC""",
        "companies and acquisitions, matched or not": """
            SELECT COUNT(CASE WHEN c.permalink IS NOT NULL AND a.company_permalink IS NULL THEN 1 END) AS first_only,
                   COUNT(CASE WHEN c.permalink IS NOT NULL AND a.company_permalink IS NOT NULL THEN 1 END) AS both,
                   COUNT(CASE WHEN c.permalink IS NULL AND a.company_permalink IS NOT NULL THEN 1 END) AS second_only
            FROM companies c FULL JOIN acquisitions a ON c.permalink = a.company_permalink""",
        "investors by state": """
            SELECT COALESCE(c.state_code, 'none') AS state, COUNT(DISTINCT i.investor_name) AS investors
            FROM companies c LEFT JOIN investments i ON c.permalink = i.company_permalink
            GROUP BY 1 HAVING COUNT(DISTINCT i.investor_name) > 0 ORDER BY 2 DESC""",
        "all deals": """
            SELECT name, 'acquired' AS deal, price_amount AS amount FROM companies c
            JOIN acquisitions a ON a.company_permalink = c.permalink
            UNION ALL
            SELECT name, 'funded', amount FROM companies c JOIN investments i ON i.company_permalink = c.permalink""",
        "acquired early": """
            SELECT c.category_code, COUNT(CASE WHEN a.acquired_at <= DATE '2024-03-01' THEN 1 END) AS early,
                   COUNT(*) AS total FROM acquisitions a JOIN companies c ON a.company_permalink = c.permalink
            GROUP BY c.category_code HAVING COUNT(*) > 1""",
        "running total of users": """
            SELECT DATE_TRUNC('month', created_at) AS month, COUNT(*) AS joined,
                   SUM(COUNT(*)) OVER (ORDER BY DATE_TRUNC('month', created_at)) AS so_far
            FROM users GROUP BY DATE_TRUNC('month', created_at)""",
    },
)
