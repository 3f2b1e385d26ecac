-- Inserts a file that is attached to a failure.
-- in: pos — of the message
-- in: failure — ordinal of the failure
-- in: ordinal — of the attachment
-- in: name — of the file
-- in: data — what it has
-- in: truncated — how many bytes are left out
-- locks: none
-- out: none
insert into @.attachment (pos, failure, ordinal, name, data, truncated)
values (:pos, :failure, :ordinal, :name, :data, :truncated)
