-- Reads the reasons of the newest failures of messages.
-- in: positions — of the messages, as JSON
-- out: pos, reason
select j.value,
  (select f.reason from failure f where f.pos = j.value order by f.ordinal desc limit 1)
from json_each(:positions) j
