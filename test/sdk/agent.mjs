// An agent that talks to a bridge through the official SDK, and what every answer must be like.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

// plane is what `rooms up --json` printed.
export const plane = JSON.parse(process.env.ROOMS_PLANE ?? 'null');
assert.ok(plane, 'ROOMS_PLANE holds the line that `rooms up --json` printed: run this through sdk_test.go');

// called are the tools that were called at least once.
export const called = new Set();

export class Agent {
  constructor(name, session, replica = 0) {
    const { plate, owner, token_file: file } = plane.agents.find((agent) => agent.name === name);
    Object.assign(this, { name, session, plate, owner, alias: `@${name}(${owner})`, url: plane.mcp_replicas[replica] });
    this.token = readFileSync(file, 'utf8').trim();
    this.client = new Client({ name: 'agentrooms-sdk-test', version: '1.0.0' });
  }

  // connect also lists the tools: from then on the SDK holds every structured content against the tool's output schema.
  async connect() {
    const headers = { Authorization: `Bearer ${this.token}` };
    await this.client.connect(new StreamableHTTPClientTransport(new URL(this.url), { requestInit: { headers } }));
    this.tools = (await this.client.listTools()).tools;
    return this;
  }

  close() {
    return this.client.close();
  }

  async answer(name, args = {}, meta = undefined) {
    called.add(name);
    const result = await this.client.callTool({ name, arguments: { session_id: this.session, ...args }, _meta: meta });
    assert.equal(result.content.length, 1, `${name}: one piece of content`);
    assert.equal(result.content[0].type, 'text');
    assert.deepEqual(JSON.parse(result.content[0].text), result.structuredContent, `${name}: the text is the structured content`);
    assert.ok(Number.isInteger(result._meta?.pending_mentions), `${name}: _meta.pending_mentions is ${result._meta?.pending_mentions}`);
    this.pending = result._meta.pending_mentions;
    this.revision = result._meta['agentrooms.dev/revision'];
    return result;
  }

  // call calls a tool that must succeed.
  async call(name, args, meta) {
    const result = await this.answer(name, args, meta);
    assert.ok(!result.isError, `${name}: ${result.content[0].text}`);
    return result.structuredContent;
  }

  // refused calls a tool that must fail with a code.
  async refused(code, name, args) {
    const result = await this.answer(name, args);
    assert.equal(result.isError, true, `${name} succeeded: ${result.content[0].text}`);
    const { error } = result.structuredContent;
    assert.equal(error.code, code, JSON.stringify(error));
    assert.equal(typeof error.status, 'number');
    assert.equal(typeof error.retryable, 'boolean');
    assert.notEqual(error.message.trim(), '');
    return error;
  }

  listen(...uris) {
    return Stream.open(this, uris);
  }
}

const modern = '2026-07-28';

// Stream is a subscriptions/listen of the protocol of 2026-07-28. The SDK does not speak it yet, so this is plain HTTP.
export class Stream {
  static async open(agent, uris) {
    const stream = new Stream();
    const response = await fetch(agent.url, {
      method: 'POST',
      signal: stream.abort.signal,
      headers: {
        Authorization: `Bearer ${agent.token}`,
        'Content-Type': 'application/json',
        Accept: 'application/json, text/event-stream',
        'Mcp-Protocol-Version': modern,
        'Mcp-Method': 'subscriptions/listen',
      },
      body: JSON.stringify({
        jsonrpc: '2.0',
        id: 1,
        method: 'subscriptions/listen',
        params: {
          _meta: { 'io.modelcontextprotocol/protocolVersion': modern, 'io.modelcontextprotocol/clientCapabilities': {} },
          notifications: { resourceSubscriptions: uris },
        },
      }),
    });
    stream.status = response.status;
    if (!response.headers.get('content-type')?.startsWith('text/event-stream')) {
      stream.refusal = await response.json();
      return stream;
    }
    stream.reading = stream.read(response.body).catch((error) => {
      if (!stream.abort.signal.aborted) throw error;
    });
    const first = await stream.next();
    assert.equal(first.method, 'notifications/subscriptions/acknowledged');
    assert.deepEqual(first.params.notifications.resourceSubscriptions, [...uris].sort());
    return stream;
  }

  abort = new AbortController();
  messages = [];
  waiting = [];

  async read(body) {
    let text = '';
    for await (const chunk of body.pipeThrough(new TextDecoderStream())) {
      const events = (text + chunk).split('\n\n');
      text = events.pop();
      for (const event of events) {
        const data = event.split('\n').find((line) => line.startsWith('data: '));
        if (data) this.take(JSON.parse(data.slice('data: '.length)));
      }
    }
  }

  take(message) {
    const waiter = this.waiting.shift();
    if (waiter) waiter(message);
    else this.messages.push(message);
  }

  next(timeout = 20_000) {
    if (this.messages.length > 0) return Promise.resolve(this.messages.shift());
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`nothing came on the stream in ${timeout} ms`)), timeout);
      this.waiting.push((message) => {
        clearTimeout(timer);
        resolve(message);
      });
    });
  }

  // updated waits until the stream says that a resource changed.
  async updated(uri) {
    for (;;) {
      const message = await this.next();
      assert.equal(message.method, 'notifications/resources/updated', JSON.stringify(message));
      if (message.params.uri === uri) return;
    }
  }

  // settle drops what comes of earlier writes, until nothing comes any more.
  async settle() {
    do {
      this.messages.length = 0;
      await new Promise((resolve) => setTimeout(resolve, 300));
    } while (this.messages.length > 0);
  }

  async close() {
    this.abort.abort();
    await this.reading;
  }
}
