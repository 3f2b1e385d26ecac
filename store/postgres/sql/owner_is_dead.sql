-- Part: whether owner o left, or was not heard of for a minute.
(o.gone or o.seen < clock_timestamp() - interval '60 s')
