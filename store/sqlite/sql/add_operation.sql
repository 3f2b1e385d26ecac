-- Adds an operation.
-- in: id, event, actor, reason, filter, force, created, destination, statuses, reviewed — columns
-- in: guarded — columns
insert into operation (id, event, actor, reason, filter, force, created, destination, statuses,
  reviewed, guarded)
values (:id, :event, :actor, :reason, :filter, :force, :created, :destination, :statuses,
  :reviewed, :guarded)
