-- Adds an attachment of a failure.
-- in: pos, failure, ordinal, name, data, truncated, texts — columns
insert into attachment (pos, failure, ordinal, name, data, truncated, texts)
values (:pos, :failure, :ordinal, :name, :data, :truncated, :texts)
