// The walk of the README with the official TypeScript SDK: two agents of two owners in the demo's room, on two replicas of
// the bridge. The steps build on each other and run in their order.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { Agent, called, plane } from './agent.mjs';

let cc, dd; // cc works for said, on the first replica; dd works for maya, on the second
let room, task, question, reply;

before(async () => {
  cc = await new Agent('cc', 'cc-sdk', 0).connect();
  dd = await new Agent('dd', 'dd-sdk', 1).connect();
});
after(() => Promise.all([cc?.close(), dd?.close()]));

const create = (agent, assignee, title, more = {}) =>
  agent.call('create_task', { room, title, definition_of_done: 'everybody can see it', assignee: assignee.alias, ...more });
const inbox = (agent) => `rooms://inbox/${agent.plate}`;
const board = () => `rooms://room/${room}/board`;

// eventually repeats what may take a moment to reach another replica.
async function eventually(what, attempt) {
  const deadline = Date.now() + 20_000;
  for (;;) {
    const value = await attempt();
    if (value) return value;
    assert.ok(Date.now() < deadline, `waited in vain for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

test('the server is described', () => {
  assert.equal(cc.client.getServerVersion().name, 'agentrooms-rooms');
  assert.match(cc.client.getInstructions(), /whoami/);
  const { tools, resources } = cc.client.getServerCapabilities();
  assert.ok(tools && resources);
});

test('there are 30 tools, each with schemas and annotations, in at most 20,000 bytes', () => {
  assert.equal(cc.tools.length, 30, 'the 29 of the contract, and wait_for_mentions');
  assert.deepEqual(cc.tools, dd.tools, 'every agent gets the same list');
  for (const tool of cc.tools) {
    assert.equal(tool.inputSchema.type, 'object', tool.name);
    assert.equal(tool.outputSchema?.type, 'object', tool.name);
    assert.ok(tool.description, tool.name);
    assert.equal(tool.annotations?.openWorldHint, false, tool.name);
  }
  const cost = Buffer.byteLength(JSON.stringify(cc.tools.map(({ outputSchema, ...rest }) => rest)));
  assert.ok(cost <= 20_000, `the list costs ${cost} bytes`);
});

test('the SDK holds results against the output schemas', async () => {
  const probe = await new Agent('cc', 'cc-probe').connect();
  const wrong = { type: 'object', properties: { plate: { type: 'integer' } }, required: ['plate'] };
  probe.client.cacheToolMetadata([{ ...probe.tools.find((tool) => tool.name === 'whoami'), outputSchema: wrong }]);
  await assert.rejects(probe.call('whoami'), /does not match the tool's output schema/);
  await probe.close();
});

test('without a valid token there is no way in', async () => {
  for (const headers of [{}, { Authorization: 'Bearer nobody' }]) {
    const client = new Client({ name: 'nobody', version: '1' });
    const transport = new StreamableHTTPClientTransport(new URL(plane.mcp), { requestInit: { headers } });
    await assert.rejects(client.connect(transport), (error) => error.code === 401);
  }
});

test('whoami', async () => {
  const me = await cc.call('whoami');
  assert.equal(me.plate, cc.plate);
  assert.equal(me.alias, '@cc(said)');
  assert.equal(me.session_id, 'cc-sdk');
  assert.deepEqual(me.scopes, ['READ', 'WRITE', 'UPLOAD', 'DOWNLOAD', 'INVOKE']);
  assert.deepEqual(me.delegations, []);
  assert.deepEqual((await dd.call('whoami')).delegations, ['CONSENT']);
});

test('list_rooms and list_members', async () => {
  const { rooms } = await cc.call('list_rooms');
  assert.equal(rooms.length, 1);
  assert.equal(rooms[0].name, 'Launch week');
  assert.equal(rooms[0].state, 'active');
  room = rooms[0].room;
  assert.equal(room, plane.room);
  const { members } = await cc.call('list_members', { room });
  assert.deepEqual(members.map((member) => member.alias ?? member.id).sort(), ['@cc(said)', '@dd(maya)', 'said']);
});

// take waits for the mention of a message, and acknowledges it with whatever else waits: controllers mention agents too.
async function take(agent, message) {
  return eventually(`the mention of ${message}`, async () => {
    const { mentions } = await agent.call('wait_for_mentions', { room, timeout_seconds: 5 });
    if (mentions.length > 0) await agent.call('ack_mentions', { mention_ids: mentions.map((one) => one.mention_id) });
    return mentions.find((one) => one.message_id === message);
  });
}

test('create_task, update_task', async () => {
  const key = `sdk-${Date.now()}`;
  task = await create(cc, cc, 'Write the post', { idempotency_key: key });
  assert.equal(task.status, 'todo');
  assert.equal(task.consent, 'auto');
  const again = await create(cc, cc, 'Write the post', { idempotency_key: key });
  assert.equal(again.task_id, task.task_id);
  assert.equal(again.duplicate, true);
  await cc.refused('IDEMPOTENCY_CONFLICT', 'create_task', {
    room, title: 'Another post', definition_of_done: 'x', assignee: cc.alias, idempotency_key: key,
  });
  const edited = await cc.call('update_task', { task_id: task.task_id, detail: 'In plain words.', priority: 10 });
  assert.equal(edited.detail, 'In plain words.');
  assert.equal(edited.priority, 10);
});

test('claim_task: one wins, the other is told who', async () => {
  const claim = await cc.call('claim_task', { task_id: task.task_id });
  assert.equal(claim.ok, true);
  assert.equal(claim.lease.holder, cc.plate);
  assert.equal(claim.lease.session_id, 'cc-sdk');
  task.fence = claim.lease.fence;
  const other = await cc.call('claim_task', { task_id: task.task_id, session_id: 'cc-other' });
  assert.equal(other.ok, false);
  assert.equal(other.reason, 'already_claimed');
  assert.equal(other.holder, `${cc.plate}/cc-sdk`);
});

test('renew_lease', async () => {
  const { ok, lease } = await cc.call('renew_lease', { task_id: task.task_id, fence: task.fence });
  assert.equal(ok, true);
  assert.ok(lease.expires_in_seconds > 590 && lease.expires_in_seconds <= 600, JSON.stringify(lease));
  const lost = await cc.refused('LEASE_LOST', 'renew_lease', { task_id: task.task_id, session_id: 'cc-other' });
  assert.equal(lost.holder, `${cc.plate}/cc-sdk`);
});

test('set_status done', async () => {
  const done = await cc.call('set_status', {
    task_id: task.task_id, status: 'done', fence: task.fence, summary: 'written', artifacts: ['file:post.md'], result_ref: 'file:post.md',
  });
  assert.equal(done.status, 'done');
  assert.equal(done.lease, null);
  assert.equal(done.record.summary, 'written');
});

test('read_board on the other replica', async () => {
  const shown = await eventually('the result to show on the board', async () => {
    const { lanes, records, counts } = await dd.call('read_board', { room });
    const found = lanes.flatMap((lane) => lane.tasks).find((one) => one.task_id === task.task_id);
    return found?.status === 'done' && { found, records, counts };
  });
  assert.equal(shown.found.detail, undefined, 'the board leaves details out');
  assert.ok(shown.records.some((record) => record.task_id === task.task_id && record.summary === 'written'));
  assert.ok(shown.counts.done >= 1);
});

test('a mention reaches the other agent, is acknowledged and answered', async () => {
  const before = dd.pending;
  question = await cc.call('send_message', { room, body: 'The post is written. Please read it.', mentions: [dd.alias] });
  assert.equal(question.duplicate, false);
  assert.deepEqual(question.mentions, [{ plate: dd.plate, alias: dd.alias }]);

  const mention = await eventually('the mention to arrive', async () => {
    const { mentions } = await dd.call('check_mentions', { room });
    return mentions.find((one) => one.message_id === question.id);
  });
  assert.equal(mention.from, cc.alias);
  assert.equal(mention.trust_level, 'trusted', 'maya trusts said in this room');
  assert.equal(mention.excerpt, 'The post is written. Please read it.');
  assert.equal(dd.pending, before + 1, 'reading acknowledges nothing');

  const acks = await dd.call('ack_mentions', { mention_ids: [mention.mention_id] });
  assert.deepEqual(acks.acked, [mention.mention_id]);
  assert.equal(acks.pending, before);
  assert.equal(dd.pending, before);
  assert.deepEqual((await dd.call('ack_mentions', { mention_ids: [mention.mention_id] })).already_acked, [mention.mention_id]);

  reply = await dd.call('send_message', { room, body: 'Reads well.', parent_id: question.id, mentions: [cc.alias] });
  assert.equal(reply.seq, question.seq + 1);
  const page = await eventually('the reply to arrive', async () => {
    const { messages } = await cc.call('read_room', { room });
    return messages.at(-1).id === reply.id && messages;
  });
  assert.equal(page.at(-1).parent_id, question.id);
  assert.equal(page.at(-1).sender.plate, dd.plate);
  page.forEach((message, i) => assert.equal(message.seq, page[0].seq + i, 'the order has no gap'));
});

test('wait_for_mentions answers at once when something waits, and when something comes', async () => {
  assert.equal((await take(cc, reply.id)).from, dd.alias);
  const waiting = cc.call('wait_for_mentions', { room, timeout_seconds: 30 });
  const sent = await dd.call('send_message', { room, body: 'One more thing.', mentions: [cc.alias] });
  const came = (await waiting).mentions.find((one) => one.message_id === sent.id);
  assert.ok(came, 'the mention came through the other replica');
  const before = cc.pending;
  await cc.call('send_message', { room, body: 'Seen.', ack_mention_ids: [came.mention_id] });
  assert.equal(cc.pending, before - 1);
  const { acked } = await cc.call('ack_mentions', { room, last_mention_seq: came.seq });
  assert.deepEqual(acked, [], 'everything up to it was acknowledged');
});

test('resolve_handle and list_instances', async () => {
  const { candidates } = await cc.call('resolve_handle', { room, handle: '@dd' });
  assert.equal(candidates.length, 1);
  assert.equal(candidates[0].plate, dd.plate);
  await eventually('the instances to show', async () => {
    const { instances } = await cc.call('list_instances', { room });
    return ['cc-sdk', 'dd-sdk'].every((session) => instances.some((one) => one.session_id === session));
  });
});

test('release_task, assign_task, archive_task', async () => {
  const other = await create(cc, cc, 'Find a picture');
  await cc.call('claim_task', { task_id: other.task_id });
  const released = await cc.call('release_task', { task_id: other.task_id });
  assert.equal(released.status, 'todo');
  assert.equal(released.lease, null);
  const assigned = await cc.call('assign_task', { task_id: other.task_id, assignee: dd.alias });
  assert.equal(assigned.assignee, dd.plate);
  assert.equal(assigned.consent, 'accepted', 'maya trusts said in this room');
  await cc.refused('FORBIDDEN', 'claim_task', { task_id: other.task_id });
  await cc.refused('CONFLICT', 'archive_task', { task_id: other.task_id });
  await cc.call('set_status', { task_id: other.task_id, status: 'cancelled', reason: 'no picture is needed' });
  assert.equal((await cc.call('archive_task', { task_id: other.task_id })).archived, true);
});

test('dependencies hold a claim back', async () => {
  const first = await create(cc, cc, 'First');
  const second = await create(cc, cc, 'Second', { depends_on: [first.task_id] });
  const claim = await cc.call('claim_task', { task_id: second.task_id });
  assert.equal(claim.ok, false);
  assert.equal(claim.reason, 'blocked_by_deps');
  assert.deepEqual(claim.blocked_by, [first.task_id]);
});

test('consent: a proposal waits, is accepted, is rejected', async () => {
  const asked = await dd.call('set_room_consent', { room, mode: 'task_by_task' });
  assert.equal(asked.owner, 'maya');
  const proposal = await eventually('the consent to be in force on the other replica', async () => {
    const made = await create(cc, dd, 'Proofread');
    if (made.consent === 'pending') return made;
    await cc.call('set_status', { task_id: made.task_id, status: 'cancelled', reason: 'came too early' });
  });
  await eventually('the proposal to show', async () => {
    const { proposals } = await dd.call('list_pending_consents', { room });
    return proposals.some((one) => one.task_id === proposal.task_id && one.from.owner === 'said');
  });
  await dd.refused('CONSENT_REQUIRED', 'claim_task', { task_id: proposal.task_id });
  await cc.refused('FORBIDDEN', 'accept_task', { task_id: proposal.task_id });
  assert.equal((await dd.call('accept_task', { task_id: proposal.task_id })).consent, 'accepted');
  assert.equal((await dd.call('claim_task', { task_id: proposal.task_id })).ok, true);
  await dd.call('set_status', { task_id: proposal.task_id, status: 'done', summary: 'no mistakes' });

  const unwanted = await create(cc, dd, 'Proofread everything again');
  await eventually('the other proposal to show', async () => {
    const { proposals } = await dd.call('list_pending_consents', { room });
    return proposals.some((one) => one.task_id === unwanted.task_id);
  });
  const rejected = await dd.call('reject_task', { task_id: unwanted.task_id, reason: 'once is enough' });
  assert.equal(rejected.consent, 'rejected');
  assert.equal(rejected.consent_reason, 'once is enough');
  await eventually('the rejection to come back as a mention', async () => {
    const { mentions } = await cc.call('wait_for_mentions', { room, timeout_seconds: 5 });
    if (mentions.length > 0) await cc.call('ack_mentions', { mention_ids: mentions.map((one) => one.mention_id) });
    return mentions.some((one) => one.task_id === unwanted.task_id);
  });
  const trust = await dd.call('set_room_consent', { room, mode: 'trust_collaborator', collaborator: 'said' });
  assert.deepEqual(trust.collaborators, ['said']);
});

test('a replica that is given the revision of a write shows it', async () => {
  const made = await create(cc, cc, 'Written through the first replica');
  const elsewhere = await new Agent('cc', 'cc-sdk', 1).connect();
  const { lanes } = await elsewhere.call('read_board', { room }, { 'agentrooms.dev/revision': cc.revision });
  assert.ok(lanes.flatMap((lane) => lane.tasks).some((one) => one.task_id === made.task_id));
  await elsewhere.close();
});

test('errors say what is wrong and what to do', async () => {
  const missing = await cc.refused('VALIDATION', 'read_board', {});
  assert.deepEqual(missing.fields, ['room']);
  const unknown = await cc.refused('VALIDATION', 'read_board', { room, colour: 'red' });
  assert.deepEqual(unknown.fields, ['colour']);
  const nobody = await cc.refused('VALIDATION', 'send_message', { room, body: 'Hello', mentions: ['@nobody'] });
  assert.ok(nobody.candidates.includes(dd.alias));
  await cc.refused('VALIDATION', 'send_message', { room, body: 'Hello', mentions: [cc.alias] });
  await cc.refused('NOT_FOUND', 'read_room', { room: task.task_id });
  await dd.refused('FORBIDDEN_SCOPE', 'create_task', { room, title: 'x', definition_of_done: 'x', assignee: cc.alias });
  await assert.rejects(cc.client.callTool({ name: 'no_such_tool', arguments: {} }), /no_such_tool|not found/i);
});

test('resources/list and resources/read', async () => {
  const { resources } = await cc.client.listResources();
  assert.deepEqual(resources.map((resource) => resource.uri).sort(), [inbox(cc), board()].sort());
  const read = async (uri) => {
    const { contents } = await cc.client.readResource({ uri });
    assert.equal(contents.length, 1);
    assert.equal(contents[0].mimeType, 'application/json');
    return JSON.parse(contents[0].text);
  };
  assert.deepEqual(await read(inbox(cc)), { plate: cc.plate, pending_mentions: (await cc.call('whoami')).pending_mentions });
  assert.equal((await read(board())).room, room);
  const { resourceTemplates } = await cc.client.listResourceTemplates();
  assert.deepEqual(resourceTemplates.map((one) => one.uriTemplate), ['rooms://inbox/{plate}', 'rooms://room/{room}/board', 'rooms://task/{task}']);
  await assert.rejects(cc.client.readResource({ uri: inbox(dd) }), (error) => error.code === -32002 || error.code === -32602);
});

test('subscriptions/listen announces what others write, on either replica', async () => {
  for (const replica of [0, 1]) {
    const listener = await new Agent('dd', `dd-listens-${replica}`, replica).connect();
    const stream = await listener.listen(inbox(dd), board());
    await stream.settle();
    const sent = await cc.call('send_message', { room, body: 'Are you there?', mentions: [dd.alias] }); // through the first replica
    await stream.updated(inbox(dd));
    await stream.settle();
    const made = await create(cc, cc, 'To be announced');
    await stream.updated(board());
    await stream.close();
    await cc.call('set_status', { task_id: made.task_id, status: 'cancelled', reason: 'only a test' });
    await take(listener, sent.id);
    await listener.close();
  }
});

test('subscriptions/listen refuses what the caller may not see', async () => {
  const stream = await cc.listen(inbox(dd));
  assert.ok(stream.refusal?.error, 'the stream opened');
  assert.equal(stream.refusal.error.data.error.code, 'NOT_FOUND');
});

test('a file is written, and read on the other replica', async () => {
  const written = await cc.call('write_file', { room, path: 'notes/post.md', content: 'A post.\nWith two lines.\n' });
  assert.equal(written.version, 1);
  const listed = await eventually('the file to show', async () => {
    const { files } = await dd.call('list_files', { room });
    return files.find((one) => one.path === 'notes/post.md');
  });
  assert.equal(listed.file_id, written.file_id);
  const line = await dd.call('read_file', { room, path: 'notes/post.md', range: { start_line: 2, end_line: 2 } });
  assert.equal(line.content, 'With two lines.\n');
  await dd.call('delete_file', { room, path: 'notes/post.md' });
});

test('bytes go up and down by URL', async () => {
  const bytes = crypto.getRandomValues(new Uint8Array(50_000));
  const sha256 = Buffer.from(await crypto.subtle.digest('SHA-256', bytes)).toString('hex');
  const shared = await cc.call('share_file', {
    room, filename: 'data.bin', content_type: 'application/octet-stream', size_bytes: bytes.length, sha256,
  });
  const put = await fetch(shared.upload_url, { method: shared.method, headers: shared.headers, body: bytes });
  assert.ok(put.ok, await put.text());
  const complete = await cc.call('complete_file_upload', { file_id: shared.file_id });
  assert.equal(complete.status, 'available');
  const fetched = await cc.call('fetch_file', { file_id: shared.file_id });
  const got = await fetch(fetched.download_url, { headers: fetched.headers ?? {} });
  assert.deepEqual(new Uint8Array(await got.arrayBuffer()), bytes);
});

test('every tool was called', () => {
  assert.deepEqual([...called].filter((name) => name !== 'no_such_tool').sort(), cc.tools.map((tool) => tool.name).sort());
});
