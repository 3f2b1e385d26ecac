-- Part: the columns of batch in the order in which scanBatch reads them.
-- whole: select … from batch
-- out: n, owner, first, last, left, claimed, until, has_rows
n, owner, first, last, left, claimed, until, has_rows
