SELECT c_name, p_name, ps_availqty, s_name, o_custkey, r_name, n_name, sum(l_extendedprice * (1 - l_discount))
FROM orders, lineitem, customer, part, partsupp, supplier, nation, region
WHERE o_orderkey = l_orderkey AND c_custkey = o_custkey AND p_partkey = l_partkey AND ps_partkey = p_partkey
  AND s_suppkey = ps_suppkey AND r_regionkey = n_regionkey AND s_nationkey = n_nationkey
GROUP BY c_name, p_name, ps_availqty, s_name, o_custkey, r_name, n_name;
