"""The schema, the 22 queries and small random rows of TPC-H. Parameters are chosen so that little data gives answers."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal
from random import Random

Row = tuple[object, ...]

SCHEMA = """
CREATE TABLE region(r_regionkey BIGINT PRIMARY KEY, r_name TEXT NOT NULL);
CREATE TABLE nation(n_nationkey BIGINT PRIMARY KEY, n_name TEXT NOT NULL, n_regionkey BIGINT NOT NULL);
CREATE TABLE supplier(s_suppkey BIGINT PRIMARY KEY, s_name TEXT NOT NULL, s_address TEXT NOT NULL, s_nationkey BIGINT NOT NULL,
  s_phone TEXT NOT NULL, s_acctbal DECIMAL(15,2) NOT NULL, s_comment TEXT NOT NULL);
CREATE TABLE customer(c_custkey BIGINT PRIMARY KEY, c_name TEXT NOT NULL, c_address TEXT NOT NULL, c_nationkey BIGINT NOT NULL,
  c_phone TEXT NOT NULL, c_acctbal DECIMAL(15,2) NOT NULL, c_mktsegment TEXT NOT NULL, c_comment TEXT NOT NULL);
CREATE TABLE part(p_partkey BIGINT PRIMARY KEY, p_name TEXT NOT NULL, p_mfgr TEXT NOT NULL, p_brand TEXT NOT NULL,
  p_type TEXT NOT NULL, p_size BIGINT NOT NULL, p_container TEXT NOT NULL);
CREATE TABLE partsupp(ps_partkey BIGINT NOT NULL, ps_suppkey BIGINT NOT NULL, ps_availqty BIGINT NOT NULL,
  ps_supplycost DECIMAL(15,2) NOT NULL, PRIMARY KEY (ps_partkey, ps_suppkey));
CREATE TABLE orders(o_orderkey BIGINT PRIMARY KEY, o_custkey BIGINT NOT NULL, o_orderstatus TEXT NOT NULL,
  o_totalprice DECIMAL(15,2) NOT NULL, o_orderdate DATE NOT NULL, o_orderpriority TEXT NOT NULL, o_shippriority BIGINT NOT NULL,
  o_comment TEXT NOT NULL);
CREATE TABLE lineitem(l_orderkey BIGINT NOT NULL, l_partkey BIGINT NOT NULL, l_suppkey BIGINT NOT NULL,
  l_linenumber BIGINT NOT NULL, l_quantity DECIMAL(15,2) NOT NULL, l_extendedprice DECIMAL(15,2) NOT NULL,
  l_discount DECIMAL(15,2) NOT NULL, l_tax DECIMAL(15,2) NOT NULL,
  l_returnflag TEXT NOT NULL, l_linestatus TEXT NOT NULL, l_shipdate DATE NOT NULL,
  l_commitdate DATE NOT NULL, l_receiptdate DATE NOT NULL, l_shipinstruct TEXT NOT NULL, l_shipmode TEXT NOT NULL,
  PRIMARY KEY (l_orderkey, l_linenumber));
"""

QUERIES = {
    1: """SELECT l_returnflag, l_linestatus, SUM(l_quantity) AS sum_qty, SUM(l_extendedprice) AS sum_base,
            SUM(l_extendedprice * (1 - l_discount)) AS sum_disc,
            SUM(l_extendedprice * (1 - l_discount) * (1 + l_tax)) AS sum_charge,
            AVG(l_quantity) AS avg_qty, AVG(l_extendedprice) AS avg_price, AVG(l_discount) AS avg_disc, COUNT(*) AS count_order
          FROM lineitem WHERE l_shipdate <= DATE '1998-12-01' - INTERVAL '90' DAY
          GROUP BY l_returnflag, l_linestatus ORDER BY l_returnflag, l_linestatus""",
    2: """SELECT s_acctbal, s_name, n_name, p_partkey, p_mfgr, s_address, s_phone, s_comment
          FROM part, supplier, partsupp, nation, region
          WHERE p_partkey = ps_partkey AND s_suppkey = ps_suppkey AND p_size < 30 AND p_type LIKE '%BRASS'
            AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey AND r_name = 'EUROPE'
            AND ps_supplycost = (SELECT MIN(ps_supplycost) FROM partsupp, supplier, nation, region
              WHERE p_partkey = ps_partkey AND s_suppkey = ps_suppkey AND s_nationkey = n_nationkey
                AND n_regionkey = r_regionkey AND r_name = 'EUROPE')
          ORDER BY s_acctbal DESC, n_name, s_name, p_partkey LIMIT 100""",
    3: """SELECT l_orderkey, SUM(l_extendedprice * (1 - l_discount)) AS revenue, o_orderdate, o_shippriority
          FROM customer, orders, lineitem
          WHERE c_mktsegment = 'BUILDING' AND c_custkey = o_custkey AND l_orderkey = o_orderkey
            AND o_orderdate < DATE '1995-03-15' AND l_shipdate > DATE '1995-03-15'
          GROUP BY l_orderkey, o_orderdate, o_shippriority ORDER BY revenue DESC, o_orderdate LIMIT 10""",
    4: """SELECT o_orderpriority, COUNT(*) AS order_count FROM orders
          WHERE o_orderdate >= DATE '1993-07-01' AND o_orderdate < DATE '1993-07-01' + INTERVAL '24' MONTH
            AND EXISTS (SELECT * FROM lineitem WHERE l_orderkey = o_orderkey AND l_commitdate < l_receiptdate)
          GROUP BY o_orderpriority ORDER BY o_orderpriority""",
    5: """SELECT n_name, SUM(l_extendedprice * (1 - l_discount)) AS revenue
          FROM customer, orders, lineitem, supplier, nation, region
          WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND l_suppkey = s_suppkey AND c_nationkey = s_nationkey
            AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey AND r_name = 'ASIA'
            AND o_orderdate >= DATE '1994-01-01' AND o_orderdate < DATE '1994-01-01' + INTERVAL '3' YEAR
          GROUP BY n_name ORDER BY revenue DESC""",
    6: """SELECT SUM(l_extendedprice * l_discount) AS revenue FROM lineitem
          WHERE l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE '1994-01-01' + INTERVAL '1' YEAR
            AND l_discount BETWEEN 0.05 AND 0.07 AND l_quantity < 24""",
    7: """SELECT supp_nation, cust_nation, l_year, SUM(volume) AS revenue FROM (
            SELECT n1.n_name AS supp_nation, n2.n_name AS cust_nation, EXTRACT(YEAR FROM l_shipdate) AS l_year,
              l_extendedprice * (1 - l_discount) AS volume
            FROM supplier, lineitem, orders, customer, nation n1, nation n2
            WHERE s_suppkey = l_suppkey AND o_orderkey = l_orderkey AND c_custkey = o_custkey
              AND s_nationkey = n1.n_nationkey AND c_nationkey = n2.n_nationkey
              AND ((n1.n_name = 'FRANCE' AND n2.n_name = 'GERMANY') OR (n1.n_name = 'GERMANY' AND n2.n_name = 'FRANCE'))
              AND l_shipdate BETWEEN DATE '1993-01-01' AND DATE '1997-12-31') AS shipping
          GROUP BY supp_nation, cust_nation, l_year ORDER BY supp_nation, cust_nation, l_year""",
    8: """SELECT o_year, SUM(CASE WHEN nation = 'FRANCE' THEN volume ELSE 0 END) / SUM(volume) AS mkt_share FROM (
            SELECT EXTRACT(YEAR FROM o_orderdate) AS o_year, l_extendedprice * (1 - l_discount) AS volume, n2.n_name AS nation
            FROM part, supplier, lineitem, orders, customer, nation n1, nation n2, region
            WHERE p_partkey = l_partkey AND s_suppkey = l_suppkey AND l_orderkey = o_orderkey AND o_custkey = c_custkey
              AND c_nationkey = n1.n_nationkey AND n1.n_regionkey = r_regionkey AND r_name = 'EUROPE'
              AND s_nationkey = n2.n_nationkey AND o_orderdate BETWEEN DATE '1993-01-01' AND DATE '1998-12-31'
              AND p_type LIKE '%BRASS') AS all_nations
          GROUP BY o_year ORDER BY o_year""",
    9: """SELECT nation, o_year, SUM(amount) AS sum_profit FROM (
            SELECT n_name AS nation, EXTRACT(YEAR FROM o_orderdate) AS o_year,
              l_extendedprice * (1 - l_discount) - ps_supplycost * l_quantity AS amount
            FROM part, supplier, lineitem, partsupp, orders, nation
            WHERE s_suppkey = l_suppkey AND ps_suppkey = l_suppkey AND ps_partkey = l_partkey AND p_partkey = l_partkey
              AND o_orderkey = l_orderkey AND s_nationkey = n_nationkey AND p_name LIKE '%green%') AS profit
          GROUP BY nation, o_year ORDER BY nation, o_year DESC""",
    10: """SELECT c_custkey, c_name, SUM(l_extendedprice * (1 - l_discount)) AS revenue, c_acctbal, n_name, c_address,
            c_phone, c_comment
          FROM customer, orders, lineitem, nation
          WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND o_orderdate >= DATE '1993-10-01'
            AND o_orderdate < DATE '1993-10-01' + INTERVAL '24' MONTH AND l_returnflag = 'R' AND c_nationkey = n_nationkey
          GROUP BY c_custkey, c_name, c_acctbal, c_phone, n_name, c_address, c_comment ORDER BY revenue DESC LIMIT 20""",
    11: """SELECT ps_partkey, SUM(ps_supplycost * ps_availqty) AS value FROM partsupp, supplier, nation
          WHERE ps_suppkey = s_suppkey AND s_nationkey = n_nationkey AND n_name = 'GERMANY' GROUP BY ps_partkey
          HAVING SUM(ps_supplycost * ps_availqty) > (SELECT SUM(ps_supplycost * ps_availqty) * 0.1
            FROM partsupp, supplier, nation WHERE ps_suppkey = s_suppkey AND s_nationkey = n_nationkey AND n_name = 'GERMANY')
          ORDER BY value DESC""",
    12: """SELECT l_shipmode,
            SUM(CASE WHEN o_orderpriority = '1-URGENT' OR o_orderpriority = '2-HIGH' THEN 1 ELSE 0 END) AS high_line_count,
            SUM(CASE WHEN o_orderpriority <> '1-URGENT' AND o_orderpriority <> '2-HIGH' THEN 1 ELSE 0 END) AS low_line_count
          FROM orders, lineitem
          WHERE o_orderkey = l_orderkey AND l_shipmode IN ('MAIL', 'SHIP') AND l_commitdate < l_receiptdate
            AND l_shipdate < l_commitdate AND l_receiptdate >= DATE '1994-01-01'
            AND l_receiptdate < DATE '1994-01-01' + INTERVAL '2' YEAR
          GROUP BY l_shipmode ORDER BY l_shipmode""",
    13: """SELECT c_count, COUNT(*) AS custdist FROM (
            SELECT c_custkey, COUNT(o_orderkey) FROM customer LEFT OUTER JOIN orders
              ON c_custkey = o_custkey AND o_comment NOT LIKE '%special%requests%'
            GROUP BY c_custkey) AS c_orders (c_custkey, c_count)
          GROUP BY c_count ORDER BY custdist DESC, c_count DESC""",
    14: """SELECT 100.00 * SUM(CASE WHEN p_type LIKE 'PROMO%' THEN l_extendedprice * (1 - l_discount) ELSE 0 END)
            / SUM(l_extendedprice * (1 - l_discount)) AS promo_revenue
          FROM lineitem, part WHERE l_partkey = p_partkey AND l_shipdate >= DATE '1995-01-01'
            AND l_shipdate < DATE '1995-01-01' + INTERVAL '12' MONTH""",
    15: """WITH revenue (supplier_no, total_revenue) AS (
            SELECT l_suppkey, SUM(l_extendedprice * (1 - l_discount)) FROM lineitem
            WHERE l_shipdate >= DATE '1996-01-01' AND l_shipdate < DATE '1996-01-01' + INTERVAL '12' MONTH GROUP BY l_suppkey)
          SELECT s_suppkey, s_name, s_address, s_phone, total_revenue FROM supplier, revenue
          WHERE s_suppkey = supplier_no AND total_revenue = (SELECT MAX(total_revenue) FROM revenue) ORDER BY s_suppkey""",
    16: """SELECT p_brand, p_type, p_size, COUNT(DISTINCT ps_suppkey) AS supplier_cnt FROM partsupp, part
          WHERE p_partkey = ps_partkey AND p_brand <> 'Brand#45' AND p_type NOT LIKE 'MEDIUM%'
            AND p_size IN (1, 4, 7, 14, 19, 23, 36, 45, 49)
            AND ps_suppkey NOT IN (SELECT s_suppkey FROM supplier WHERE s_comment LIKE '%Customer%Complaints%')
          GROUP BY p_brand, p_type, p_size ORDER BY supplier_cnt DESC, p_brand, p_type, p_size""",
    17: """SELECT SUM(l_extendedprice) / 7.0 AS avg_yearly FROM lineitem, part
          WHERE p_partkey = l_partkey AND p_brand LIKE 'Brand#1%' AND l_quantity < (
            SELECT 0.7 * AVG(l_quantity) FROM lineitem WHERE l_partkey = p_partkey)""",
    18: """SELECT c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice, SUM(l_quantity) AS quantity
          FROM customer, orders, lineitem
          WHERE o_orderkey IN (SELECT l_orderkey FROM lineitem GROUP BY l_orderkey HAVING SUM(l_quantity) > 90)
            AND c_custkey = o_custkey AND o_orderkey = l_orderkey
          GROUP BY c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice ORDER BY o_totalprice DESC, o_orderdate LIMIT 100""",
    19: """SELECT SUM(l_extendedprice * (1 - l_discount)) AS revenue FROM lineitem, part
          WHERE (p_partkey = l_partkey AND p_brand LIKE 'Brand#1%' AND p_container IN ('SM CASE', 'SM BOX')
              AND l_quantity >= 1 AND l_quantity <= 31 AND p_size BETWEEN 1 AND 25 AND l_shipmode IN ('AIR', 'REG AIR'))
            OR (p_partkey = l_partkey AND p_brand LIKE 'Brand#2%' AND p_container IN ('MED BAG', 'MED BOX')
              AND l_quantity >= 10 AND l_quantity <= 40 AND p_size BETWEEN 1 AND 40 AND l_shipmode IN ('AIR', 'MAIL'))
            OR (p_partkey = l_partkey AND p_brand LIKE 'Brand#4%' AND l_quantity >= 20 AND p_size BETWEEN 1 AND 50)""",
    20: """SELECT s_name, s_address FROM supplier, nation
          WHERE s_suppkey IN (SELECT ps_suppkey FROM partsupp
              WHERE ps_partkey IN (SELECT p_partkey FROM part WHERE p_name LIKE 'g%')
                AND ps_availqty > (SELECT 0.5 * SUM(l_quantity) FROM lineitem
                  WHERE l_partkey = ps_partkey AND l_suppkey = ps_suppkey AND l_shipdate >= DATE '1994-01-01'
                    AND l_shipdate < DATE '1994-01-01' + INTERVAL '3' YEAR))
            AND s_nationkey = n_nationkey AND n_name IN ('FRANCE', 'GERMANY') ORDER BY s_name""",
    21: """SELECT s_name, COUNT(*) AS numwait FROM supplier, lineitem l1, orders, nation
          WHERE s_suppkey = l1.l_suppkey AND o_orderkey = l1.l_orderkey AND o_orderstatus = 'F'
            AND l1.l_receiptdate > l1.l_commitdate
            AND EXISTS (SELECT * FROM lineitem l2 WHERE l2.l_orderkey = l1.l_orderkey AND l2.l_suppkey <> l1.l_suppkey)
            AND NOT EXISTS (SELECT * FROM lineitem l3 WHERE l3.l_orderkey = l1.l_orderkey
              AND l3.l_suppkey <> l1.l_suppkey AND l3.l_receiptdate > l3.l_commitdate)
            AND s_nationkey = n_nationkey AND n_name IN ('FRANCE', 'CHINA')
          GROUP BY s_name ORDER BY numwait DESC, s_name LIMIT 100""",
    22: """SELECT cntrycode, COUNT(*) AS numcust, SUM(c_acctbal) AS totacctbal FROM (
            SELECT SUBSTRING(c_phone FROM 1 FOR 2) AS cntrycode, c_acctbal FROM customer
            WHERE SUBSTRING(c_phone FROM 1 FOR 2) IN ('13', '31', '23', '29', '30', '18', '17')
              AND c_acctbal > (SELECT AVG(c_acctbal) FROM customer WHERE c_acctbal > 0.00
                AND SUBSTRING(c_phone FROM 1 FOR 2) IN ('13', '31', '23', '29', '30', '18', '17'))
              AND NOT EXISTS (SELECT * FROM orders WHERE o_custkey = c_custkey)) AS custsale
          GROUP BY cntrycode ORDER BY cntrycode""",
}


def small_data(random: Random) -> dict[str, list[Row]]:
    """Rows for all tables; orders and their items apart from each other can be added later."""
    nations = ["FRANCE", "GERMANY", "CHINA", "INDIA"]
    phones = ["13-1", "31-2", "23-3", "40-4"]
    data: dict[str, list[Row]] = {
        "region": [(0, "EUROPE"), (1, "ASIA")],
        "nation": [(at, name, at // 2) for at, name in enumerate(nations)],
        "supplier": [
            (
                key,
                f"S{key}",
                f"street {key}",
                key % 4,
                phones[key % 4],
                _money(random),
                random.choice(("", "Customer Complaints")),
            )
            for key in range(8)
        ],
        "customer": [
            (
                key,
                f"C{key}",
                f"road {key}",
                key % 4,
                random.choice(phones),
                _money(random),
                random.choice(_SEGMENTS),
                "",
            )
            for key in range(20)
        ],
        "part": [
            (
                key,
                random.choice(("green tin", "red cup", "grey box")),
                "M1",
                f"Brand#{random.choice((12, 23, 45))}",
                random.choice(("PROMO BRASS", "MEDIUM BRASS", "LARGE TIN")),
                random.choice((1, 4, 23, 45)),
                random.choice(("SM BOX", "MED BAG")),
            )
            for key in range(12)
        ],
    }
    data["partsupp"] = [
        (part, (part + at) % 8, random.randint(1, 60), _money(random)) for part in range(12) for at in range(3)
    ]
    data["orders"], data["lineitem"] = orders(random, range(60))
    return data


_SEGMENTS = ("BUILDING", "MACHINERY")
_PRIORITIES = ("1-URGENT", "2-HIGH", "5-LOW")


def orders(random: Random, keys: range) -> tuple[list[Row], list[Row]]:
    """What the refresh functions insert and delete: orders with their items."""
    made: list[Row] = []
    items: list[Row] = []
    for key in keys:
        day = date(1993, 1, 1) + timedelta(days=random.randrange(1500))
        comment = random.choice(("", "special deep requests"))
        status = random.choice("FO")
        made.append((key, random.randrange(15), status, _money(random), day, random.choice(_PRIORITIES), 0, comment))
        for line in range(random.randint(1, 4)):
            part = random.randrange(12)
            shipped, committed, received = (day + timedelta(days=random.randint(1, 90)) for _ in range(3))
            items.append(
                (
                    *(
                        key,
                        part,
                        (part + random.randrange(3)) % 8,
                        line,
                        Decimal(random.randint(1, 50)),
                        _money(random),
                    ),
                    *(
                        Decimal(random.randint(0, 10)) / 100,
                        Decimal(random.randint(0, 8)) / 100,
                        random.choice("RAN"),
                        random.choice("FO"),
                    ),
                    *(shipped, committed, received, "NONE", random.choice(("MAIL", "SHIP", "AIR"))),
                )
            )
    return made, items


def _money(random: Random) -> Decimal:
    return Decimal(random.randint(-999, 99999)) / 100
