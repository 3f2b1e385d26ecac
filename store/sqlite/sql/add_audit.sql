-- Adds an audit entry.
-- in: queue, number, at, actor, event, subject, reason, hash, operation — columns
insert into audit (queue, number, at, actor, event, subject, reason, hash, operation)
values (:queue, :number, :at, :actor, :event, :subject, :reason, :hash, :operation)
