-- Inserts an operation.
-- in: id — its ID
-- in: event — what is done to the letters
-- in: actor — who asked for it
-- in: reason — why
-- in: filter — as text
-- in: force — whether letters are moved that are not redrivable
-- in: created — when
-- in: destination — queue or topic, or empty
-- in: statuses — that letters may have
-- in: reviewed — whether letters that need review are meant
-- in: guarded — whether only the planned revisions are meant
-- locks: none
-- out: none
insert into @.operation (
  id, event, actor, reason, filter, force, created, destination, statuses, reviewed, guarded
)
values (
  :id, :event, :actor, :reason, :filter, :force, :created, :destination, :statuses, :reviewed, :guarded
)
