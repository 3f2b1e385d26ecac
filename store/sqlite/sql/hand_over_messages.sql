-- Writes that a broker took messages.
-- in: state, ended, note — new values
-- in: positions — of the messages, as JSON
{{hand_over}} where pos in (select value from json_each(:positions))
