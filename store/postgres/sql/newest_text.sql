-- Part: the text of the newest failure of message c.
coalesce(
  (select f.text from @.history f where f.pos = c.pos order by f.ordinal desc limit 1),
  ''
)
