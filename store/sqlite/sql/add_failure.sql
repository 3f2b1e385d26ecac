-- Adds a failure.
-- in: pos, ordinal, queue, at, decision, reason, text, doc, texts — columns
insert into failure (pos, ordinal, queue, at, decision, reason, text, doc, texts)
values (:pos, :ordinal, :queue, :at, :decision, :reason, :text, :doc, :texts)
