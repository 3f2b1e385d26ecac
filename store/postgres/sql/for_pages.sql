-- Lets queries go down an index and look at each row of a page, also while PostgreSQL has not
-- counted what the tables hold.
-- locks: none
-- out: none
select
  set_config('enable_bitmapscan', 'off', true),
  set_config('enable_mergejoin', 'off', true),
  set_config('enable_hashjoin', 'off', true)
