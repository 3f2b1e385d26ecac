-- A mailbox in Redis, format 1. docs/redis.md explains it, and how other programs use it.
--
-- A record is in one of three states:
--
--   visible   its ID is in pending
--   leased    its ID is in held, with the end of the lease, and in holders, with the token
--   delayed   its ID is in held, with the time when it becomes visible, and not in holders
--
-- KEYS     of the mailbox NAME, in this order; all have one hash tag, so they are in one slot
--   pending  nixie:{NAME}:pending   list of IDs, the next one first
--   held     nixie:{NAME}:held      sorted set of IDs by a time in ms since 1970
--   records  nixie:{NAME}:records   hash of ID to the time of sending in ms, a colon, and the record
--   counts   nixie:{NAME}:counts    hash of ID to "deliveries crashes releases epoch" and perhaps a note,
--                                   of records that came back; and of the mailbox's own fields, which
--                                   begin with @. Deliveries are those that were attempts; epoch counts
--                                   all; the note is what the receiver that gave the record back said
--   holders  nixie:{NAME}:holders   hash of ID to the token of its lease
--   wake     nixie:{NAME}:wake      list of at most one element, on which receivers block
--   seen     nixie:{NAME}:seen      sorted set of the keys of once, by the time until which it
--                                   remembers them; only once needs it, and it has a time to live
--
-- ARGV     the verb and its arguments; each function below says which
--
-- Each call reads first. The reads fail if a key has a wrong type, and nothing is changed then. The
-- clock is that of the server. All answers are strings, or lists of strings.
local pending, held, records, counts, holders, wake, seen = unpack(KEYS)
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)

local FORMAT = '1'
local MOST_BYTES = 8388608 -- of the records of one claim, unless the first ones have more
local SWEPT = 100 -- records that one call takes out of held
local MOST_SEEN = 100000 -- keys that once remembers
local MOST_STOPS = 20 -- holders that may vanish with a record after they were told to stop
local MOST_TOLD = 1000 -- holders of which it is remembered that they were told to stop

local function text(number)
	return string.format('%d', number)
end

-- apply calls a command that takes many arguments, in parts that fit on the stack.
local function apply(command, key, args)
	for i = 1, #args, 4000 do
		redis.call(command, key, unpack(args, i, math.min(i + 3999, #args)))
	end
end

-- look_up returns the values of fields of a hash, in parts that fit on the stack.
local function look_up(key, fields)
	local found = {}
	for i = 1, #fields, 4000 do
		for _, value in ipairs(redis.call('HMGET', key, unpack(fields, i, math.min(i + 3999, #fields)))) do
			found[#found + 1] = value
		end
	end
	return found
end

-- numbers reads the counts of a record.
local function numbers(value)
	local deliveries, crashes, releases, epoch, note = string.match(value or '', '^(%d+) (%d+) (%d+) (%d+) ?(.*)$')
	return tonumber(deliveries or 0), tonumber(crashes or 0), tonumber(releases or 0), tonumber(epoch or 0), note or ''
end

-- written is how counts has them.
local function written(deliveries, crashes, releases, epoch, note)
	local all = string.format('%d %d %d %d', deliveries, crashes, releases, epoch)
	return note == '' and all or all .. ' ' .. note
end

-- stopped returns a note with one stop more, and nil if it has as many as are free.
local function stopped(note)
	local is_read, patience = pcall(cjson.decode, note)
	patience = is_read and type(patience) == 'table' and patience or {}
	patience.stops = (tonumber(patience.stops) or 0) + 1
	return patience.stops <= MOST_STOPS and cjson.encode(patience) or nil
end

-- told_holders returns the beginnings of the tokens of holders that were told to stop, the first told
-- first.
local function told_holders()
	local list = {}
	for holder in string.gmatch(redis.call('HGET', counts, '@told') or '', '%S+') do
		list[#list + 1] = holder
		list[holder] = true
	end
	return list
end

local keep, drop -- fields of the mailbox that state reads
local came_back -- whether counts has any record

-- state reads all keys, and so finds those of a wrong type. It returns how many records there are,
-- how many of them are in a list, and what is wrong with the mailbox.
local function state()
	local all = redis.call('HLEN', records)
	local listed = redis.call('LLEN', pending) + redis.call('ZCARD', held)
	redis.call('HLEN', holders)
	redis.call('LLEN', wake)
	local own, fields = redis.call('HMGET', counts, '@format', '@born', '@sent', '@keep', '@drop', '@expired', '@missing'), 0
	for i = 1, 7 do
		if own[i] then
			fields = fields + 1
		end
	end
	local format = own[1]
	keep, drop, came_back = tonumber(own[4] or '0'), own[5] == '1', redis.call('HLEN', counts) > fields
	if not format then
		return all, listed, redis.error_reply('NOMAILBOX there is no such mailbox')
	elseif format ~= FORMAT then
		return all, listed, redis.error_reply('FORMAT the mailbox has format ' .. format .. ', and this script knows ' .. FORMAT)
	end
	return all, listed, nil
end

-- spare_memory lets the rest of the call write although the memory of the server is full: a script
-- that has removed something may go on. What was accepted has to be finished even then.
local function spare_memory()
	redis.call('ZREM', held, '')
end

-- wake_one wakes a receiver that waits, if there is something for it.
local function wake_one()
	if redis.call('EXISTS', wake) == 0 and redis.call('LLEN', pending) > 0 then
		redis.call('RPUSH', wake, '1')
	end
end

-- make_first puts IDs before all others, in their order.
local function make_first(ids)
	local reversed = {}
	for i = #ids, 1, -1 do
		reversed[#reversed + 1] = ids[i]
	end
	apply('LPUSH', pending, reversed)
end

-- sent_before sorts IDs in the order of sending: they are numbers.
local function sent_before(a, b)
	if #a ~= #b then
		return #a < #b
	end
	return a < b
end

-- sweep makes records visible whose lease or delay has ended. A holder whose lease ended has
-- vanished: that counts as a delivery and as a crash. If it was told to stop, it counts as a stop.
local function sweep()
	local due = redis.call('ZRANGEBYSCORE', held, '-inf', now, 'LIMIT', 0, SWEPT)
	if #due == 0 then
		return
	end
	local tokens, known = look_up(holders, due), look_up(counts, due)
	local crashed, delayed, changes, told = {}, {}, {}, told_holders()
	for i, id in ipairs(due) do
		if tokens[i] then
			local deliveries, crashes, releases, epoch, note = numbers(known[i])
			local free = told[string.match(tokens[i], '^[^:]*:')] and stopped(note)
			changes[#changes + 1] = id
			changes[#changes + 1] = free and written(deliveries, crashes, releases, epoch + 1, free)
				or written(deliveries + 1, crashes + 1, releases, epoch + 1, note)
			crashed[#crashed + 1] = id
		else
			delayed[#delayed + 1] = id
		end
	end
	table.sort(crashed, sent_before)
	apply('ZREM', held, due)
	apply('HDEL', holders, crashed)
	apply('HSET', counts, changes)
	came_back = came_back or #crashed > 0
	make_first(crashed)
	apply('RPUSH', pending, delayed)
end

-- sent_at reads when a record was sent. Of one that another program wrote without a time it returns
-- nil: a receiver gets it as damaged, and it holds up no other.
local function sent_at(record)
	local ms = string.match(record, '^(%d+):')
	return ms and #ms < 14 and tonumber(ms) or nil
end

-- drop_expired removes visible records from the front that are kept no longer, if no receiver is to
-- judge them.
local function drop_expired()
	if keep == 0 or not drop then
		return
	end
	local at = 0
	for _ = 1, SWEPT do
		local id = redis.call('LINDEX', pending, at)
		local record = id and redis.call('HGET', records, id)
		local sent = record and sent_at(record)
		if not id or sent and sent + keep > now then
			return
		end
		if record and not sent then
			at = at + 1
		else
			redis.call('LREM', pending, 1, id)
			redis.call('HDEL', records, id)
			redis.call('HDEL', counts, id)
			redis.call('HINCRBY', counts, '@expired', 1)
		end
	end
end

-- last_sent finds the highest ID, for a mailbox whose counts were deleted: no ID is given twice.
local function last_sent()
	local last = 0
	for _, id in ipairs(redis.call('HKEYS', records)) do
		last = math.max(last, tonumber(id) or 0)
	end
	return text(last)
end

-- create KEEP DROP: makes the mailbox if it is not there. KEEP is how many ms a record is kept, 0
-- for ever, and - to leave that as it is. With DROP 1 the mailbox itself removes what it keeps no
-- longer; with 0 the receiver gets it and decides. The answer is 1 if the mailbox is new.
local function create(to_keep, to_drop)
	local _, _, wrong = state()
	local new = wrong and string.find(wrong.err, '^NOMAILBOX')
	if wrong and not new then
		return wrong
	end
	if new then
		redis.call('HSET', counts, '@format', FORMAT, '@born', time[1] .. '.' .. time[2], '@sent', last_sent())
	end
	if to_keep == '0' then
		redis.call('HDEL', counts, '@keep', '@drop')
	elseif to_keep ~= '-' then
		redis.call('HSET', counts, '@keep', to_keep, '@drop', to_drop)
	end
	return new and '1' or '0'
end

-- add adds records that are given as DELAY … RECORD, but not those that are known. It returns their
-- IDs, and 0 for the known ones.
local function add(from, step, known, new)
	local n = (#ARGV - from + 1) / step
	local last = redis.call('HINCRBY', counts, '@sent', new) - new
	local ids, visible, delayed, bodies, sent = {}, {}, {}, {}, text(now) .. ':'
	for i = 1, n do
		local at, id = from + (i - 1) * step, '0'
		if not known[i] then
			last = last + 1
			id = text(last)
			local delay = tonumber(ARGV[at])
			bodies[#bodies + 1], bodies[#bodies + 2] = id, sent .. ARGV[at + step - 1]
			if delay > 0 then
				delayed[#delayed + 1] = text(now + delay)
				delayed[#delayed + 1] = id
			else
				visible[#visible + 1] = id
			end
		end
		ids[i] = id
	end
	apply('HSET', records, bodies)
	apply('RPUSH', pending, visible)
	apply('ZADD', held, delayed)
	drop_expired()
	wake_one()
	return ids
end

-- send (DELAY RECORD)…: adds records, each visible after a delay in ms. The answer is their IDs.
local function send()
	local _, _, wrong = state()
	if wrong then
		return wrong
	end
	return add(2, 2, {}, (#ARGV - 1) / 2)
end

-- once WITHIN (DELAY KEY RECORD)…: adds records as send does, but none whose KEY came here less than
-- WITHIN ms ago. An empty KEY is new each time. Of more than MOST_SEEN keys it forgets the oldest. The
-- answer is the IDs, and 0 for what it did not add. It needs the seventh of KEYS.
local function once(within)
	local _, _, wrong = state()
	redis.call('ZCARD', seen)
	if wrong then
		return wrong
	end
	local known, new, mine, remember = {}, 0, {}, {}
	for i = 1, (#ARGV - 2) / 3 do
		local key = ARGV[3 * i + 1]
		local till = mine[key] or key ~= '' and redis.call('ZSCORE', seen, key)
		if till and tonumber(till) > now then
			known[i] = true
		else
			new = new + 1
			if key ~= '' then
				mine[key] = now + within
				remember[#remember + 1], remember[#remember + 2] = text(now + within), key
			end
		end
	end
	apply('ZADD', seen, remember)
	apply('ZREM', seen, redis.call('ZRANGEBYSCORE', seen, '-inf', now, 'LIMIT', 0, SWEPT + #remember))
	local over = redis.call('ZCARD', seen) - MOST_SEEN
	if over > 0 then
		apply('ZREM', seen, redis.call('ZRANGE', seen, 0, over - 1))
	end
	redis.call('PEXPIRE', seen, within)
	return add(3, 3, known, new)
end

-- claim MAX LEASE TOKEN: leases visible records for LEASE ms. The answer is the time in ms until
-- another record becomes visible (−1: none), 1 if records are in no list and the mailbox needs
-- repair, how many IDs had no record, how many ms a record is kept (0: for ever), and for each
-- record ID, body and counts.
local function claim(max, lease, token)
	local all, listed, wrong = state()
	if wrong then
		return wrong
	end
	spare_memory()
	sweep()
	drop_expired()
	local out = {'-1', all > listed and '1' or '0', '0', text(keep)}
	local taken, ends, missing, bytes, ending = {}, {}, 0, 0, text(now + lease)
	local at, n = #out, 0
	while max > 0 and bytes < MOST_BYTES do
		local ids = redis.call('LPOP', pending, math.min(max, SWEPT))
		if not ids or #ids == 0 then
			break
		end
		local bodies, known = look_up(records, ids), came_back and look_up(counts, ids) or {}
		for i, id in ipairs(ids) do
			local body = bodies[i]
			if body then
				bytes = bytes + #body
				out[at + 1], out[at + 2], out[at + 3] = id, body, known[i] or ''
				taken[2 * n + 1], taken[2 * n + 2] = id, token
				ends[2 * n + 1], ends[2 * n + 2] = ending, id
				at, n = at + 3, n + 1
			else
				missing = missing + 1
			end
		end
		max = max - #ids
	end
	apply('HSET', holders, taken)
	apply('ZADD', held, ends)
	if missing > 0 then
		redis.call('HINCRBY', counts, '@missing', missing)
		out[3] = text(missing)
	end
	local next = redis.call('ZRANGE', held, 0, 0, 'WITHSCORES')
	if next[2] then
		out[1] = text(math.max(0, tonumber(next[2]) - now))
	end
	wake_one()
	return out
end

-- held_by returns which of the records that are given as ID TOKEN … are still leased under their
-- token. A lease that has ended, and that nothing has swept yet, is as good as any.
local function held_by(from, step)
	local ids, mine = {}, {}
	for i = from, #ARGV, step do
		ids[#ids + 1] = ARGV[i]
	end
	for i, token in ipairs(look_up(holders, ids)) do
		mine[i] = token == ARGV[from + (i - 1) * step + 1]
	end
	return ids, mine
end

-- answer makes a string of one digit for each record: 1 if it was leased under its token.
local function answer(mine)
	local digits = {}
	for i, is in ipairs(mine) do
		digits[i] = is and '1' or '0'
	end
	return table.concat(digits)
end

-- ack (ID TOKEN)…: removes records that are done.
local function ack()
	local _, _, wrong = state()
	if wrong then
		return wrong
	end
	local ids, mine = held_by(2, 2)
	local done = {}
	for i, id in ipairs(ids) do
		if mine[i] then
			done[#done + 1] = id
		end
	end
	apply('HDEL', records, done)
	if came_back then
		apply('HDEL', counts, done)
	end
	apply('HDEL', holders, done)
	apply('ZREM', held, done)
	return answer(mine)
end

-- give_back returns leased records. Lists are of IDs, of delays in ms and of how they are given
-- back: 0 unused, 1 released, 2 failed; after 1 or 2 and a blank the note that the record has from
-- now on.
local function give_back(ids, delays, as)
	local first, later, changes = {}, {}, {}
	for i, known in ipairs(look_up(counts, ids)) do
		local deliveries, crashes, releases, epoch, note = numbers(known)
		local how, said = string.match(as[i] or '', '^(%d) ?(.*)$')
		if how == '1' then
			releases = releases + 1
		elseif how == '2' then
			deliveries = deliveries + 1
		end
		if how == '1' or how == '2' then
			note = said
		end
		changes[#changes + 1] = ids[i]
		changes[#changes + 1] = written(deliveries, crashes, releases, epoch + 1, note)
		if delays[i] > 0 then
			later[#later + 1] = text(now + delays[i])
			later[#later + 1] = ids[i]
		else
			first[#first + 1] = ids[i]
		end
	end
	spare_memory()
	apply('HSET', counts, changes)
	apply('HDEL', holders, ids)
	apply('ZREM', held, first)
	apply('ZADD', held, later)
	make_first(first)
	wake_one()
end

-- nack (ID TOKEN DELAY AS)…: gives records back, as 0 unused, 1 released (a delivery that was no
-- attempt) or 2 failed, perhaps with a note.
local function nack()
	local _, _, wrong = state()
	if wrong then
		return wrong
	end
	local ids, mine = held_by(2, 4)
	local back, delays, as = {}, {}, {}
	for i, id in ipairs(ids) do
		if mine[i] then
			back[#back + 1] = id
			delays[#back] = tonumber(ARGV[4 * i])
			as[#back] = ARGV[4 * i + 1]
		end
	end
	give_back(back, delays, as)
	return answer(mine)
end

-- extend LEASE (ID TOKEN)…: leases records for LEASE ms from now. A lease of 0 only asks.
local function extend(lease)
	local _, _, wrong = state()
	if wrong then
		return wrong
	end
	local ids, mine = held_by(3, 2)
	local ends = {}
	for i, id in ipairs(ids) do
		if mine[i] and lease > 0 then
			ends[#ends + 1] = text(now + lease)
			ends[#ends + 1] = id
		end
	end
	spare_memory()
	apply('ZADD', held, ends)
	return answer(mine)
end

-- leave PREFIX CURSOR: gives back what is leased under tokens that begin with PREFIX, as if it had
-- not been received. It looks at a part of the holders; the answer is where the next call goes on,
-- and 0 at the end.
local function leave(prefix, cursor)
	local _, _, wrong = state()
	if wrong then
		return wrong
	end
	local page = redis.call('HSCAN', holders, cursor, 'COUNT', 1000)
	local back, delays = {}, {}
	for i = 1, #page[2], 2 do
		if string.sub(page[2][i + 1], 1, #prefix) == prefix then
			back[#back + 1] = page[2][i]
			delays[#back] = 0
		end
	end
	table.sort(back, sent_before)
	give_back(back, delays, {})
	return page[1]
end

-- stopping HOLDER TOLD: notes that a holder, with whose name its tokens begin, was told to stop (1), or
-- that it works on (0).
local function stopping(holder, told)
	local _, _, wrong = state()
	if wrong then
		return wrong
	end
	local kept = {}
	for _, other in ipairs(told_holders()) do
		if other ~= holder then
			kept[#kept + 1] = other
		end
	end
	if told == '1' then
		kept[#kept + 1] = holder
	end
	spare_memory()
	if #kept == 0 then
		redis.call('HDEL', counts, '@told')
	else
		redis.call('HSET', counts, '@told', table.concat(kept, ' ', math.max(1, #kept - MOST_TOLD + 1)))
	end
	return '1'
end

-- repair LONGEST: puts records that are in no list where they belong, as after a key was deleted by
-- hand: what has a holder counts as abandoned, the rest is visible. It reads all IDs, and only if
-- the sums tell that some are in no list. A lease that ends later than LONGEST ms from now, because
-- the clock was set back, is shortened. The answer is how many records were in no list.
local function repair(longest)
	local all, listed, wrong = state()
	if wrong then
		return wrong
	end
	spare_memory()
	local abandoned = 0
	for _, id in ipairs(redis.call('HKEYS', holders)) do
		local at = redis.call('ZSCORE', held, id)
		if not at then
			abandoned = abandoned + 1
			redis.call('ZADD', held, text(now), id)
		elseif tonumber(at) > now + longest then
			redis.call('ZADD', held, text(now + longest), id)
		end
	end
	local visible = {}
	if all > listed + abandoned then
		local waits = {}
		for _, id in ipairs(redis.call('LRANGE', pending, 0, -1)) do
			waits[id] = true
		end
		for _, id in ipairs(redis.call('HKEYS', records)) do
			if not waits[id] and not redis.call('ZSCORE', held, id) then
				visible[#visible + 1] = id
			end
		end
		table.sort(visible, sent_before)
		apply('RPUSH', pending, visible)
	end
	wake_one()
	return text(abandoned + #visible)
end

-- stats: the answer is the numbers of records that are visible, leased and delayed, of those that
-- were ever sent, that expired, and whose body was missing; how many ms a record is kept (0: for
-- ever), 1 if the mailbox removes what it keeps no longer, the age in ms of the first visible
-- record (−1: none), and the time when the mailbox was made.
local function stats()
	local _, _, wrong = state()
	if wrong then
		return wrong
	end
	local leased = redis.call('HLEN', holders)
	local own = redis.call('HMGET', counts, '@sent', '@expired', '@missing', '@born')
	local first = redis.call('LINDEX', pending, 0)
	local record = first and redis.call('HGET', records, first)
	local sent = record and sent_at(record)
	local age = sent and math.max(0, now - sent) or -1
	return {
		text(redis.call('LLEN', pending)), text(leased), text(redis.call('ZCARD', held) - leased),
		own[1] or '0', own[2] or '0', own[3] or '0', text(keep), drop and '1' or '0', text(age), own[4] or '',
	}
end

-- remaining PREFIX: the answer is how many records there are, how many of them are leased under tokens
-- that do not begin with PREFIX, and in how many ms the last of those leases ends. A lease that has
-- ended counts no more: the next claim gets its record.
local function remaining(prefix)
	local all, _, wrong = state()
	if wrong then
		return wrong
	end
	local leases, others, last = redis.call('HGETALL', holders), 0, now
	for i = 1, #leases, 2 do
		local ends = tonumber(redis.call('ZSCORE', held, leases[i]) or 0)
		if string.sub(leases[i + 1], 1, #prefix) ~= prefix and ends > now then
			others, last = others + 1, math.max(last, ends)
		end
	end
	return {text(all), text(others), text(last - now)}
end

-- purge MAX: removes up to MAX visible and then delayed records. The answer is how many.
local function purge(max)
	local _, _, wrong = state()
	if wrong then
		return wrong
	end
	local ids = redis.call('LPOP', pending, max) or {}
	local waiting = redis.call('ZRANGE', held, 0, max + redis.call('HLEN', holders) - 1)
	for i, token in ipairs(look_up(holders, waiting)) do
		if not token and #ids < max then
			ids[#ids + 1] = waiting[i]
			redis.call('ZREM', held, waiting[i])
		end
	end
	apply('HDEL', records, ids)
	apply('HDEL', counts, ids)
	return text(#ids)
end

-- browse FROM MAX: looks at visible records from a position on and leases none. The answer is for
-- each record ID, body and counts.
local function browse(from, max)
	local _, _, wrong = state()
	if wrong then
		return wrong
	end
	local ids = redis.call('LRANGE', pending, from, from + max - 1)
	local bodies, known, out = look_up(records, ids), look_up(counts, ids), {}
	for i, id in ipairs(ids) do
		if bodies[i] then
			out[#out + 1], out[#out + 2], out[#out + 3] = id, bodies[i], known[i] or ''
		end
	end
	return out
end

local verb = ARGV[1]
if verb == 'send' then
	return send()
elseif verb == 'once' then
	return once(tonumber(ARGV[2]))
elseif verb == 'claim' then
	return claim(tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4])
elseif verb == 'ack' then
	return ack()
elseif verb == 'nack' then
	return nack()
elseif verb == 'extend' then
	return extend(tonumber(ARGV[2]))
elseif verb == 'create' then
	return create(ARGV[2], ARGV[3])
elseif verb == 'leave' then
	return leave(ARGV[2], ARGV[3])
elseif verb == 'stopping' then
	return stopping(ARGV[2], ARGV[3])
elseif verb == 'repair' then
	return repair(tonumber(ARGV[2]))
elseif verb == 'stats' then
	return stats()
elseif verb == 'remaining' then
	return remaining(ARGV[2])
elseif verb == 'purge' then
	return purge(tonumber(ARGV[2]))
elseif verb == 'browse' then
	return browse(tonumber(ARGV[2]), tonumber(ARGV[3]))
end
return redis.error_reply('VERB this script has no verb ' .. tostring(verb))
