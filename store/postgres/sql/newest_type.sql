-- Part: the type of the newest failure of a message, empty if it has none or its document is damaged.
-- fill: of — the position of the message, as an expression
coalesce(
  (
    select substring(f.doc from '"type":("([^"\\]|\\.)*")')::json #>> '{}'
    from @.history f
    where f.pos = {of}
    order by f.ordinal desc
    limit 1
  ),
  ''
)
