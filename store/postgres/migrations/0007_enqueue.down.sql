drop function @.enqueue(text, text, text, text, text, text, interval, jsonb, integer, interval, text, boolean);
drop function @.enqueue(text, bytea, text, text, text, text, interval, jsonb, integer, interval, text, boolean);
drop function @.recompute_heads(integer[], text[], bigint);
drop function @.duration(interval);
drop function @.quoted(text, integer);
