-- Gives a message that holds a dedupe key what a newer one says.
-- in: pos — of the message, whose row is locked
-- in: body — of the newer one, and so on
-- in: hash — of the body
-- in: headers — as JSON, or empty
-- in: type — of the newer one
-- in: key — or empty: it stays
-- locks: none
-- out: none
update @.message set
  body = :body,
  hash = :hash,
  headers = nullif(:headers, ''),
  type = :type,
  key = coalesce(nullif(:key, ''), key)
where pos = :pos
