-- Part: the positions of the newest messages that were discarded or canceled.
-- fill: limit — how many at most
select pos from @.log where state in (3, 4) order by pos desc limit {limit}
