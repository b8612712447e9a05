"""An auction house: the queries without windows over time."""

from __future__ import annotations

from tests.select.corpora.model import PublicSql

NEXMARK = PublicSql(
    "nexmark",
    "the Nexmark benchmark (nexmark/nexmark): q0 to q4, q9 and q13 to q22, those that have no window over time; "
    "functions that only Flink has are written as Spark has them",
    {
        "person": {
            "id": "int",
            "name": "string Peter Kate Walter",
            "email": "string p@x k@y",
            "city": "string Phoenix Boise Kent",
            "state": "string OR ID CA AZ",
            "ts": "timestamp",
        },
        "auction": {
            "id": "int",
            "item_name": "string wheel plant",
            "initial_bid": "int",
            "reserve": "int",
            "ts": "timestamp",
            "expires": "timestamp",
            "seller": "int",
            "category": "int",
        },
        "bid": {
            "auction": "int",
            "bidder": "int",
            "price": "int",
            "channel": "string Google Apple apple channel-1",
            "url": "string https://x/a/b https://y/c?channel_id=7",
            "ts": "timestamp",
            "extra": "string abc cc",
        },
        "side_input": {"side_key": "int", "side_value": "string one two"},
    },
    {
        "q0": "SELECT auction, bidder, price, ts, extra FROM bid",
        "q1": "SELECT auction, bidder, 0.908 * price AS price, ts, extra FROM bid",
        "q2": "SELECT auction, price FROM bid WHERE MOD(auction, 3) = 0",
        "q3": """
            SELECT p.name, p.city, p.state, a.id FROM auction AS a INNER JOIN person AS p ON a.seller = p.id
            WHERE a.category = 2 AND (p.state = 'OR' OR p.state = 'ID' OR p.state = 'CA')""",
        "q4": """
            SELECT q.category, AVG(q.final) AS average
            FROM (SELECT MAX(b.price) AS final, a.category FROM auction a, bid b
                  WHERE a.id = b.auction AND b.ts BETWEEN a.ts AND a.expires GROUP BY a.id, a.category) q
            GROUP BY q.category""",
        "q9": """
            SELECT id, item_name, seller, auction, bidder, price, bid_ts
            FROM (SELECT a.id, a.item_name, a.seller, b.auction, b.bidder, b.price, b.ts AS bid_ts,
                         ROW_NUMBER() OVER (PARTITION BY a.id
                             ORDER BY b.price DESC, b.ts ASC, b.bidder ASC, a.item_name, a.seller) AS place
                  FROM auction a, bid b WHERE a.id = b.auction AND b.ts BETWEEN a.ts AND a.expires) t
            WHERE place <= 1""",
        "q13": """
            SELECT b.auction, b.bidder, b.price, b.ts, s.side_value FROM bid b JOIN side_input AS s
            ON MOD(b.auction, 4) = s.side_key""",
        "q14": """
            SELECT auction, bidder, 0.908 * price AS price,
                   CASE WHEN EXTRACT(HOUR FROM ts) >= 8 AND EXTRACT(HOUR FROM ts) <= 18 THEN 'dayTime'
                        WHEN EXTRACT(HOUR FROM ts) <= 6 OR EXTRACT(HOUR FROM ts) >= 20 THEN 'nightTime'
                        ELSE 'otherTime' END AS bid_time_type,
                   ts, LENGTH(extra) - LENGTH(REPLACE(extra, 'c', '')) AS c_counts
            FROM bid WHERE 0.908 * price > 1 AND 0.908 * price < 50""",
        "q15": """
            SELECT CAST(ts AS DATE) AS day, COUNT(*) AS total_bids, COUNT(*) FILTER (WHERE price < 2) AS rank1_bids,
                   COUNT(*) FILTER (WHERE price >= 2) AS rank2_bids, COUNT(DISTINCT bidder) AS total_bidders,
                   COUNT(DISTINCT bidder) FILTER (WHERE price < 2) AS rank1_bidders,
                   COUNT(DISTINCT auction) AS total_auctions
            FROM bid GROUP BY CAST(ts AS DATE)""",
        "q16": """
            SELECT channel, CAST(ts AS DATE) AS day, MAX(ts) AS latest, COUNT(*) AS total_bids,
                   COUNT(*) FILTER (WHERE price < 2) AS rank1_bids, COUNT(DISTINCT bidder) AS total_bidders,
                   COUNT(DISTINCT auction) FILTER (WHERE price >= 2) AS rank2_auctions
            FROM bid GROUP BY channel, CAST(ts AS DATE)""",
        "q17": """
            SELECT auction, CAST(ts AS DATE) AS day, COUNT(*) AS total_bids,
                   COUNT(*) FILTER (WHERE price < 2) AS rank1_bids, MIN(price) AS min_price, MAX(price) AS max_price,
                   AVG(price) AS avg_price, SUM(price) AS sum_price
            FROM bid GROUP BY auction, CAST(ts AS DATE)""",
        "q18": """
            SELECT auction, bidder, price, channel, ts
            FROM (SELECT auction, bidder, price, channel, ts,
                         RANK() OVER (PARTITION BY bidder, auction ORDER BY ts DESC) AS place FROM bid) t
            WHERE place <= 1""",
        "q19": """
            SELECT auction, price, place
            FROM (SELECT auction, price, RANK() OVER (PARTITION BY auction ORDER BY price DESC) AS place FROM bid) t
            WHERE place <= 2""",
        "q20": """
            SELECT b.auction, b.bidder, b.price, b.channel, b.url, b.ts AS bid_ts, a.item_name, a.initial_bid,
                   a.reserve, a.ts AS auction_ts, a.expires, a.seller, a.category
            FROM bid AS b INNER JOIN auction AS a ON b.auction = a.id WHERE a.category = 3""",
        "q21": """
            SELECT auction, bidder, price, channel,
                   CASE WHEN LOWER(channel) = 'apple' THEN '0' WHEN LOWER(channel) = 'google' THEN '1'
                        ELSE REGEXP_EXTRACT(url, 'channel_id=([^&]*)', 1) END AS channel_id
            FROM bid
            WHERE REGEXP_EXTRACT(url, 'channel_id=([^&]*)', 1) <> '' OR LOWER(channel) IN ('apple', 'google')""",
        "q22": """
            SELECT auction, bidder, price, channel, SPLIT_PART(url, '/', 4) AS dir1, SPLIT_PART(url, '/', 5) AS dir2
            FROM bid""",
    },
)
