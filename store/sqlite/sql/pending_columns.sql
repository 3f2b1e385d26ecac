-- Part: the columns of pending in the order in which scanPending reads them.
-- whole: select … from pending
-- out: pos, queue, state, priority, due, attempts, deliveries, crashes, generation, redrives,
-- out: number, owner, until, received, abandoned, steps, stream, rank, may_pass, gap, claimed,
-- out: reason, alone, redriven, patience
pos, queue, state, priority, due, attempts, deliveries, crashes, generation, redrives,
number, owner, until, received, abandoned, steps, stream, rank, may_pass, gap, claimed,
reason, alone, redriven, patience
