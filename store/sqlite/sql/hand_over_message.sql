-- Writes that a broker took a message.
-- in: state, ended, note — new values
-- in: pos — of the message
-- in: dead — the state that it has to have
{{hand_over}} where pos = :pos and state = :dead
