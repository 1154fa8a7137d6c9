SELECT l_orderkey, o_orderdate, o_shippriority
FROM customer, orders, lineitem
WHERE c_mktsegment = 'MACHINERY' AND c_custkey = o_custkey AND o_orderkey = l_orderkey
  AND o_orderdate < '1995-03-15' AND l_shipdate > '1995-03-15';
