-- Enqueue for callers in any language, in a transaction of theirs: select * from @.enqueue(queue, body).
-- It leaves the rows that Store.Tx leaves. Who may call it needs no right on a table.

-- Quotes a text as Go's %q does, cut after some of its bytes. Of the characters that cannot be seen it
-- knows controls, spaces and marks of direction.
create function @.quoted(value text, most integer) returns text language plpgsql immutable strict
set search_path = pg_catalog, pg_temp
as $$
declare
  shown text := '"';
  used integer := 0;
  letter text;
  code integer;
begin
  for i in 1 .. length(value) loop
    letter := substr(value, i, 1);
    code := ascii(letter);
    if used + octet_length(letter) > most then
      for j in 0 .. most - used - 1 loop
        shown := shown || E'\\x' || lpad(to_hex(get_byte(convert_to(letter, 'UTF8'), j)), 2, '0');
      end loop;
      return shown || '…"';
    end if;
    used := used + octet_length(letter);
    shown := shown || case
      when code in (34, 92) then E'\\' || letter
      when code between 7 and 13 then E'\\' || substr('abtnvfr', code - 6, 1)
      when code < 32 or code = 127 then E'\\x' || lpad(to_hex(code), 2, '0')
      when code between 128 and 160
        or code in (173, 12288, 65279)
        or code between 8192 and 8207
        or code between 8232 and 8239
        or code between 8287 and 8303 then E'\\u' || lpad(to_hex(code), 4, '0')
      else letter
    end;
  end loop;
  return shown || '"';
end $$;

-- A time as Go writes a Duration: 1h30m0s, 1.5ms. A month has 30 days, and a year 365.25.
create function @.duration(value interval) returns text language plpgsql immutable strict
set search_path = pg_catalog, pg_temp
as $$
declare
  micros numeric;
  rest numeric;
  sign text := '';
begin
  if not isfinite(value) then
    return 'infinite';
  end if;
  micros := (extract(epoch from value) * 1000000)::numeric;
  if micros < 0 then
    sign := '-';
    micros := -micros;
  end if;
  rest := micros % 60000000 / 1000000;
  return sign || case
    when micros = 0 then '0s'
    when micros < 1000 then trunc(micros) || 'µs'
    when micros < 1000000 then trim_scale(micros / 1000) || 'ms'
    when micros < 60000000 then trim_scale(rest) || 's'
    when micros < 3600000000 then trunc(micros / 60000000) || 'm' || trim_scale(rest) || 's'
    else trunc(micros / 3600000000) || 'h' || trunc(micros % 3600000000 / 60000000) || 'm' || trim_scale(rest) || 's'
  end;
end $$;

-- The statement recompute_heads of the library: it decides which messages of streams claims may
-- find, and returns the names of queues in which something may be claimed now. A test compares them.
create function @.recompute_heads(integer[], text[], bigint) returns setof text
language plpgsql as $$
begin
  return query
    with
      s as materialized (
        select
          s.n, s.queue,
          greatest(
            s.top,
            (
              select m.pos
              from @.message m
              where m.ordered_stream = s.n and m.pos < coalesce(f.pos, 9223372036854775807)
              order by m.pos desc
              limit 1
            )
          ) as top,
          greatest(s.at, f.pos - 1) as at, s.has_token and f.pos is not null as has_token, f.pos as head,
          q.name, q.strict
        from @.stream s
        join @.queue q on q.n = s.queue
        left join lateral (select m.pos, m.enqueued
          from @.message m
          where m.ordered_stream = s.n and m.pos > s.at and (select l.pos from @.log l where l.pos = m.pos) is null
          order by m.pos
          limit 1) f on true
        where s.n = any(array(
            select x.n
            from unnest($1::int[], $2::text[]) u (queue, name)
            cross join lateral (
              select o.n from @.stream o where o.queue + 0 = u.queue and o.name = u.name limit 1
            ) x
          ))
      ),
      v as materialized (
        select
          s.n, s.queue, s.name, s.strict, s.top, s.at, s.has_token,
          case when s.has_token then s.head else leased.pos end as leased,
          first.pos as first, coalesce(first.rowless, false) as rowless, coalesce(first.due, 0) as due,
          exists (
            select
            from @.letter l
            where l.stream = s.n and l.blocks and (first.pos is null or l.rank < first.rank)
          ) as dead,
          exists (select from @.pending p where p.stream = s.n)
            or exists (select from @.letter l where l.stream = s.n)
            or coalesce(first.rowless and first.pos < s.top, false) as mixed
        from s
        left join lateral (
          select p.pos
          from @.pending p
          where p.stream = s.n and p.stream is not null and p.state = 1
          limit 1
        ) leased on true
        left join lateral (
          select *
          from (
            (
              select p.pos, p.due, p.rank, false as rowless
              from @.pending p
              where s.strict and p.stream = s.n
              order by p.rank
              limit 1
            )
            union all
            (
              select p.pos, p.due, p.rank, false
              from @.pending p
              where not s.strict and p.stream = s.n
              order by p.due, p.rank
              limit 1
            )
            union all
            (select f.pos, f.enqueued, f.pos, true from (select m.pos, m.enqueued
              from @.message m
              where m.ordered_stream = s.n and m.pos > s.at and (select l.pos from @.log l where l.pos = m.pos) is null
              order by m.pos
              limit 1) f)
          ) f
          order by f.rank
          limit 1
        ) first on true
      ),
      w as materialized (
        select
          v.n, v.queue, v.name, v.mixed, v.top,
          v.leased is null and v.dead as blocked,
          case when v.leased is null and not v.dead then v.first end as head,
          v.leased is null and not v.dead and v.rowless and v.mixed as enters,
          v.leased is null and v.rowless and not v.mixed as gets_token,
          v.has_token or not v.mixed as has_token,
          case when v.leased is null and v.mixed then v.due else 0 end as due,
          case when v.leased is null and not v.dead and v.rowless and v.mixed then v.first else v.at end as at,
          passer.pos as passer,
          v.strict and v.first is null and v.leased is null as ends,
          not v.strict
            and v.first is null
            and v.leased is null
            and not exists (select from @.letter l where l.stream = v.n) as empty
        from v
        left join lateral (
          select p.pos
          from @.pending p
          where v.leased is null
            and v.strict
            and (v.dead or v.due > $3::bigint)
            and p.stream = v.n
            and p.may_pass
            and (v.dead or p.pos <> v.first)
          order by p.due, p.rank
          limit 1
        ) passer on true
      ),
      demoted as (
        update @.pending p set state = 6
        where p.state = 0
          and p.pos = any(array(
            select x.pos
            from w
            cross join lateral (
              select r.pos
              from @.pending r
              where r.stream = w.n
                and r.stream is not null
                and r.state = 0
                and r.pos is distinct from w.head
                and r.pos is distinct from w.passer
              offset 0
            ) x
          ))
      ),
      promoted as (
        update @.pending p set state = 0
        where p.state = 6
          and p.pos = any(array(
            select head from w where head is not null
            union all
            select passer from w where passer is not null
          ))
      ),
      entered as (
        insert into @.pending (state, pos, queue, priority, due, queue_pos, attempts, deliveries, crashes, generation, redrives,
          number, owner, until, received, claimed, stream, rank, may_pass, gap)
        select 0, m.pos, m.queue, 0, m.enqueued, m.pos, 0, 0, 0, 1, 0,
          0, 0, 0, 0, 0, m.ordered_stream, m.pos, false, false
        from w
        cross join lateral (select * from @.message m where m.pos = w.head limit 1) m
        where w.enters
      ),
      ended as (delete from @.stream s where s.n = any(array(select n from w where empty))),
      given as (
        insert into @.token (queue, streams, positions)
        select queue, array_agg(n), array_agg(case when ends then -1 - top else head end)
        from w
        where gets_token or ends
        group by queue
      ),
      noted as (
        update @.stream s set
          blocked = w.blocked, due = w.due, mixed = w.mixed, has_token = w.has_token, at = w.at, top = w.top
        from w
        where s.n = w.n
          and s.n = any(array(select n from w where not empty))
          and (s.blocked, s.due, s.mixed, s.has_token, s.at, s.top)
            is distinct from (w.blocked, w.due, w.mixed, w.has_token, w.at, w.top)
      )
    select distinct name from w where passer is not null or head is not null and due <= $3::bigint;
end $$;

-- Enqueues a message. It takes the locks that the library takes, in its order, and reads the queue
-- once it has that of the queue: a statement here sees what was committed before it began.
--
-- Null is the default of an argument. wake says whether to notify the processes that wait for work.
create function @.enqueue(
  queue text, body bytea, type text default '', key text default '', stream text default '', dedupe_key text default '',
  delay interval default '0', headers jsonb default null, priority integer default 0, expires_in interval default null,
  on_conflict text default 'return', wake boolean default true,
  out id uuid, out duplicate boolean, out different boolean
) language plpgsql security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
declare
  fields constant text[] := array['queue', 'type', 'key', 'stream', 'dedupe key'];
  names constant text[] := array[
    coalesce(queue, ''), coalesce(type, ''), coalesce(key, ''), coalesce(stream, ''), coalesce(dedupe_key, '')
  ];
  schema_name constant text := rtrim('@.', '.'); -- so that nixie migrate validate finds it
  own_priority constant integer := coalesce(priority, 0);
  own_delay constant interval := coalesce(delay, '0');
  no_name boolean;
  not_text text;
  size bigint;
  header_list text;
  queue_n integer; -- of the queue
  ordering text;
  is_closed boolean;
  note text;
  micros bigint; -- the time
  due_at bigint;
  expires_at bigint := 0;
  plain boolean;
  in_stream boolean;
  on_path boolean; -- it goes by the ordered path
  stream_n bigint;
  is_mixed boolean;
  is_idle boolean;
  own_pos bigint;
  body_hash bytea;
  holder_hash bytea;
  wakes boolean;
  ignored boolean;
begin
  -- What Message.Check refuses, in its order and its words.
  if names[1] = '' then
    raise exception using errcode = '22023', message = 'queue is empty: name the queue of the message';
  end if;
  for i in 1 .. 5 loop
    if octet_length(names[i]) > 255 then
      raise exception using errcode = '22023', message = format(
        '%s has %s bytes, the limit is 255: shorten it or use a hash', fields[i], octet_length(names[i])
      );
    elsif names[i] ~ E'[\\u0001-\\u001f\\u007f-\\u009f]' then
      raise exception using errcode = '22023', message = format(
        '%s %s holds a control character: remove it', fields[i], @.quoted(names[i], 40)
      );
    end if;
  end loop;
  if body is null then
    raise exception using errcode = '22023', message = 'body is null: give one, which may be empty';
  elsif octet_length(body) > 16777216 then
    raise exception using errcode = '22023', message = format(
      'body has %s bytes, the limit is 16777216: store it elsewhere and enqueue a reference', octet_length(body)
    );
  end if;
  if headers is not null and jsonb_typeof(headers) <> 'null' then
    if jsonb_typeof(headers) not in ('object', 'array') then
      raise exception using errcode = '22023', message = format(
        'headers are a %s: give an object of texts, or an array of objects with name and value', jsonb_typeof(headers)
      );
    end if;
    select
      bool_or(coalesce(h.name, '') = ''), min(h.name) filter (where jsonb_typeof(h.value) is distinct from 'string'),
      sum(octet_length(h.name) + octet_length(h.value #>> '{}')),
      '[' || string_agg(format('{"name":%s,"value":%s}', to_json(h.name), h.value), ',' order by h.at) || ']'
    into no_name, not_text, size, header_list
    from (
      select o.name, o.value, o.at
      from jsonb_each(case jsonb_typeof(headers) when 'object' then headers else '{}' end)
        with ordinality o (name, value, at)
      union all
      select case jsonb_typeof(a.one -> 'name') when 'string' then a.one ->> 'name' end, a.one -> 'value', a.at
      from jsonb_array_elements(case jsonb_typeof(headers) when 'array' then headers else '[]' end)
        with ordinality a (one, at)
    ) h;
    if no_name then
      raise exception using errcode = '22023',
        message = 'header "": name and value have to be valid UTF-8, and the name not empty';
    elsif not_text is not null then
      raise exception using errcode = '22023', message = format(
        'header %s has a value that is no text: give a string', @.quoted(not_text, 40)
      );
    elsif size > 65536 then
      raise exception using errcode = '22023', message = format(
        'headers have %s bytes, the limit is 65536: move data into the body', size
      );
    end if;
    -- as Go's encoding/json writes them
    header_list := replace(replace(replace(replace(replace(header_list,
      '<', E'\\u003c'), '>', E'\\u003e'), '&', E'\\u0026'), chr(8232), E'\\u2028'), chr(8233), E'\\u2029');
  end if;
  if own_priority < -4 or own_priority > 4 then
    raise exception using errcode = '22023', message = format(
      'priority is %s: give one from -4 to 4', own_priority
    );
  end if;
  if extract(epoch from own_delay) < 0 or extract(epoch from own_delay) > 315360000 then
    raise exception using errcode = '22023', message = format(
      'delay is %s: give one from 0 to 87600h0m0s', @.duration(own_delay)
    );
  end if;
  if extract(epoch from expires_in) <= 0 then
    raise exception using errcode = '22023', message = format(
      'expires_in is %s: give a positive duration, or null for never', @.duration(expires_in)
    );
  end if;
  if coalesce(on_conflict, 'return') not in ('return', 'fail') then
    raise exception using errcode = '22023', message = format(
      'on_conflict is %s: give return or fail', @.quoted(on_conflict, 40)
    );
  end if;

  loop
    select q.n into queue_n from @.queue q where q.name = names[1];
    if not found then
      insert into @.queue (name, age, lease) values (names[1], 3600000000000, 30000000000) on conflict do nothing;
      insert into @.chain (queue) select q.n from @.queue q where q.name = names[1] on conflict do nothing;
      insert into @.cursor (queue)
      select q.n
      from @.queue q
      where q.name = names[1] and not exists (select from @.cursor c where c.queue = q.n)
      on conflict do nothing;
      continue;
    end if;
    ignored := pg_advisory_xact_lock_shared(hashtext(schema_name), queue_n) is null;
    select
      coalesce(q.settings ->> 'order', ''), coalesce((q.settings ->> 'closed')::boolean, false),
      coalesce(q.settings ->> 'closed_note', ''), (extract(epoch from clock_timestamp()) * 1000000)::bigint
    into ordering, is_closed, note, micros
    from @.queue q
    where q.n = queue_n;
    exit when found;
  end loop;
  if is_closed then
    raise exception using errcode = '55000', message = format(
      'queue %s is closed to new messages%s: nixie queue resume opens it again', names[1],
      case when note <> '' then ' (' || note || ')' else '' end
    );
  end if;

  body_hash := sha256(body);
  plain := names[5] = '' and own_priority = 0 and own_delay = '0';
  in_stream := names[4] <> '' and ordering in ('strict', 'relaxed');
  on_path := in_stream and plain and ordering = 'strict';
  if in_stream and not on_path and current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
    raise exception using errcode = '25000', message = format(
      'the transaction is %s, and sees streams as they were when it began: begin it as read committed',
      current_setting('transaction_isolation')
    );
  end if;
  while in_stream loop
    insert into @.stream (queue, name)
    select queue_n, names[4]
    where not exists (select from @.stream s where s.queue + 0 = queue_n and s.name = names[4])
    on conflict do nothing;
    if on_path then
      -- Others go on in the stream meanwhile. A second transaction that adds waits for this one.
      select s.n into stream_n from @.stream s where s.queue + 0 = queue_n and s.name = names[4] for key share;
      if found then
        insert into @.adding (stream) values (stream_n);
        delete from @.adding a where a.stream = stream_n;
        exit;
      end if;
    else
      select s.n into stream_n from @.stream s where s.queue + 0 = queue_n and s.name = names[4] for update;
      if found then
        select
          s.mixed,
          not s.mixed
            and coalesce(
              (
                select m.pos <= s.at or (select l.pos from @.log l where l.pos = m.pos) is not null
                from @.message m
                where m.ordered_stream = s.n
                order by m.pos desc
                limit 1
              ),
              true
            )
        into is_mixed, is_idle
        from @.stream s
        where s.n = stream_n;
        exit;
      end if;
    end if;
  end loop;
  own_pos := nextval('@.position'); -- under the lock of the stream, in whose order it is

  while names[5] <> '' loop
    insert into @.dedupe (queue, key, pos) values (queue_n, names[5], own_pos) on conflict do nothing;
    exit when found;
    select m.id, m.hash
    into id, holder_hash
    from @.dedupe d
    join @.message m on m.pos = d.pos
    where d.queue = queue_n and d.key = names[5];
    if found and on_conflict = 'fail' then
      raise exception using errcode = '23505', message = format(
        'dedupe key %s is held by message %s: choose another key or accept the existing message',
        @.quoted(names[5], 255), id
      );
    elsif found then
      duplicate := true;
      different := holder_hash <> body_hash;
      return;
    end if;
  end loop;

  -- A UUID of version 7 with microseconds. It does not say the position: who has it before the commit
  -- could give it to another message.
  id := encode(
    int8send(micros / 1000 << 16 | 28672 | micros % 1000 * 4096 / 1000) || substr(uuid_send(gen_random_uuid()), 9), 'hex'
  )::uuid;
  due_at := micros * 1000 + (extract(epoch from own_delay) * 1000000)::bigint * 1000;
  if expires_in is not null then
    expires_at := case
      when extract(epoch from expires_in) < 7258118400 -- 230 years
        then least(micros::numeric * 1000 + (extract(epoch from expires_in) * 1000000)::bigint::numeric * 1000, 9223372036854775807)
      else 9223372036854775807
    end;
  end if;
  insert into @.message (
    pos, id, queue, type, key, stream, dedupe, priority, body, hash, headers, enqueued, expires, by_range, ordered_stream
  )
  values (
    own_pos, id, queue_n, names[2], nullif(names[3], ''), nullif(names[4], ''), nullif(names[5], ''), own_priority, body,
    body_hash, header_list, micros * 1000, expires_at, plain and ordering not in ('strict', 'relaxed'),
    case when on_path then stream_n end
  );
  wakes := due_at <= micros * 1000 + 1000000000; -- a process looks once a second
  if on_path then
    insert into @.token (queue, streams, positions) values (queue_n, array[stream_n], array[-own_pos]);
  elsif not plain or ordering in ('strict', 'relaxed') then
    insert into @.pending (
      pos, queue, state, priority, due, queue_pos, attempts, deliveries, crashes, generation, redrives, number, owner, until,
      received, claimed, stream, rank, may_pass, gap
    )
    values (
      own_pos, queue_n, case when in_stream then 6 else 0 end, own_priority, due_at, own_pos, 0, 0, 0, 1, 0, 0, 0, 0,
      0, 0, stream_n, case when in_stream then own_pos else 0 end, false, false
    );
  end if;
  if in_stream and not on_path then
    if is_idle and not is_mixed then
      update @.stream s set has_token = false where s.n = stream_n;
    end if;
    perform from @.recompute_heads(array[queue_n], array[names[4]], micros * 1000);
    wakes := found or wakes and due_at > micros * 1000;
  end if;

  duplicate := false;
  different := false;
  if not wakes or not coalesce(wake, true) then
    return;
  end if;
  -- All listeners share a lock: who could have it alone need not notify. A notification goes out with
  -- the commit, once for each queue.
  if pg_try_advisory_lock(hashtext('nixie listen ' || schema_name), 0) then
    ignored := pg_advisory_unlock(hashtext('nixie listen ' || schema_name), 0);
  else
    ignored := pg_notify(schema_name, 'sql ' || names[1]) is null;
  end if;
end $$;

-- The same for a text, which is kept as UTF-8.
create function @.enqueue(
  queue text, body text, type text default '', key text default '', stream text default '', dedupe_key text default '',
  delay interval default '0', headers jsonb default null, priority integer default 0, expires_in interval default null,
  on_conflict text default 'return', wake boolean default true,
  out id uuid, out duplicate boolean, out different boolean
) language plpgsql as $$
declare
  receipt record;
begin
  receipt := @.enqueue(
    queue, pg_catalog.convert_to(body, 'UTF8'), type, key, stream, dedupe_key, delay, headers, priority, expires_in, on_conflict,
    wake
  );
  id := receipt.id;
  duplicate := receipt.duplicate;
  different := receipt.different;
end $$;

-- By default all roles may call a function.
revoke all on function
  @.quoted(text, integer), @.duration(interval), @.recompute_heads(integer[], text[], bigint),
  @.enqueue(text, bytea, text, text, text, text, interval, jsonb, integer, interval, text, boolean),
  @.enqueue(text, text, text, text, text, text, interval, jsonb, integer, interval, text, boolean)
from public;
