-- Part: the columns of pending that a message of the ordered path gets with its row.
state, pos, queue, priority, due, queue_pos, attempts, deliveries, crashes, generation, redrives,
number, owner, until, received, claimed, stream, rank, may_pass, gap
