-- Reads how commits are made durable.
-- out: synchronous
select case synchronous when 2 then 'full' when 3 then 'extra' else synchronous end
from pragma_synchronous
