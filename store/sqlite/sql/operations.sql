-- Lists operations, the newest first.
-- in: before — number of the last one on the page before, 0 is none
-- in: limit — how many at most
-- out: operation_columns
{{operation_columns}}
where o.n in (
  select n from operation where :before = 0 or n < :before order by n desc limit :limit)
order by o.n desc
