-- Part: the values of ordered_columns but the state, for a message m that was not claimed.
m.pos, m.queue, 0, m.enqueued, m.pos, 0, 0, 0, 1, 0,
0, 0, 0, 0, 0, m.ordered_stream, m.pos, false, false
