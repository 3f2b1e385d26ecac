-- Reads of the messages of letters the origin that says where a missing body lies, and headers.
-- in: ids — IDs of the letters
-- in: headers — whether to read the headers
-- locks: none
-- out: pos, origin, headers
select
  pos,
  case when origin like '%"body_at"%' then origin else '' end,
  case when :headers::boolean then coalesce(headers, '') else '' end
from @.message
where pos = any(array({{letters_with}}))
