// What the board's tests share: the browser, agents over MCP, people at the API server, and what must hold in every page.
import assert from 'node:assert/strict'
import { readFileSync, mkdirSync } from 'node:fs'
import net from 'node:net'
import { createRequire } from 'node:module'
import { chromium } from 'playwright-core'

export const scene = JSON.parse(process.env.ROOMS_SCENE)
export const board = scene.board.replace(/\/$/, '')
const axeSource = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

let browser
export const complaints = [] // what pages wrote to the console, and requests that left the host
export const expected = [] // patterns of complaints that a test provokes

export async function start () {
  browser = await chromium.launch({
    executablePath: scene.browser,
    args: [
      '--no-sandbox', '--host-resolver-rules=MAP page* 127.0.0.1', '--disable-dev-shm-usage',
      '--disable-site-isolation-trials', '--renderer-process-limit=6' // fifty pages of fifty hosts are not fifty processes
    ]
  })
}

export const stop = () => browser.close()

// people gives a context in which somebody is signed in: by a token, or as the admin by the state that the link left.
const states = {}
export async function context (who, options = {}) {
  const c = await browser.newContext({ viewport: { width: 1280, height: 800 }, storageState: states[who], ...options })
  c.on('console', (m) => { if (m.type() === 'error' || m.type() === 'warning') complain(m.text() + ' ' + (m.location().url || '')) })
  c.on('weberror', (e) => complain(String(e.error())))
  c.on('request', (r) => {
    const host = new URL(r.url()).hostname
    if (!/^(127\.0\.0\.1|page\d+)$/.test(host) && !r.url().startsWith('data:')) complain('a request left the host: ' + r.url())
  })
  c.setDefaultTimeout(15000)
  return c
}

function complain (text) {
  if (!expected.some((pattern) => pattern.test(text))) complaints.push(text)
}

export async function remember (who, c) { states[who] = await c.storageState() }

export async function signIn (who, token) {
  const c = await context()
  const page = await c.newPage()
  await page.goto(board + '/')
  await page.getByLabel('Your Kubernetes token').fill(token)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.waitForURL(board + '/')
  await remember(who, c)
  return { c, page }
}

// open opens a page and waits until it is live.
export async function open (c, path, base = board) {
  const page = await c.newPage()
  await page.goto(base + path)
  await live(page)
  return page
}

export const live = (page, times = 1) => page.waitForFunction((n) => {
  const el = document.getElementById('live')
  return el && Number(el.dataset.open || 0) >= n
}, times)

// mcp calls a tool as an agent, at a replica.
let calls = 0
export async function mcp (agent, tool, args = {}, replica = 0) {
  const response = await fetch(scene.mcp_replicas[replica], {
    method: 'POST',
    headers: {
      Authorization: 'Bearer ' + scene.tokens[agent], 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream'
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: ++calls, method: 'tools/call', params: { name: tool, arguments: { session_id: 'one', ...args } } })
  })
  const message = await response.json()
  assert.ok(message.result, JSON.stringify(message))
  return message.result.structuredContent
}

export async function must (agent, tool, args, replica) {
  const result = await mcp(agent, tool, args, replica)
  assert.ok(!result.error, tool + ': ' + JSON.stringify(result.error))
  return result
}

export async function newTask (agent, room, title, more = {}) {
  const made = await must(agent, 'create_task', { room: scene.rooms[room], title, definition_of_done: 'It is done', ...more })
  return made.task_id ?? made.task.task_id
}

export async function taskOf (agent, room, id, replica) {
  const shown = await must(agent, 'read_board', { room: scene.rooms[room] }, replica)
  return shown.lanes.flatMap((l) => l.tasks).find((t) => t.task_id === id)
}

// until waits for a condition, looking at it twenty times a second.
export async function until (what, condition, limit = 10000) {
  const end = Date.now() + limit
  while (!(await condition())) {
    if (Date.now() > end) assert.fail(`waited ${limit} ms in vain for ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

// accessible holds a page against axe's rules.
export async function accessible (page, what) {
  await page.evaluate(axeSource)
  const found = await page.evaluate(() => window.axe.run(document, { resultTypes: ['violations'] }))
  const said = found.violations.map((v) => `${v.id}: ${v.help}\n  ${v.nodes.slice(0, 3).map((n) => n.html + ' ' + (n.any[0]?.message ?? '')).join('\n  ')}`)
  assert.deepEqual(said, [], 'axe-core on ' + what)
}

// picture takes a picture for the docs, when it is asked for: BOARD_PICTURES names the folder.
export async function picture (page, name) {
  const dir = process.env.BOARD_PICTURES
  if (!dir) return
  mkdirSync(dir, { recursive: true })
  await until('the notices to go', async () => (await page.locator('.toast').count()) === 0, 20000)
  if (page.viewportSize().width > 1000) await page.setViewportSize({ width: 1280, height: 720 })
  await page.screenshot({ path: `${dir}/${name}.png`, animations: 'disabled' })
}

// balancer stands in for a Service: it leads each connection to the first replica that answers.
export async function balancer () {
  const ports = scene.board_replicas.map((url) => Number(new URL(url).port))
  const sockets = new Set()
  const server = net.createServer((client) => {
    sockets.add(client)
    client.on('close', () => sockets.delete(client)).on('error', () => client.destroy())
    const next = (i) => {
      if (i === ports.length) return client.destroy()
      const upstream = net.connect(ports[i], '127.0.0.1')
      let connected = false
      upstream.on('connect', () => {
        connected = true
        client.pipe(upstream)
        upstream.pipe(client)
      })
      upstream.on('error', () => { connected ? client.destroy() : next(i + 1) })
      upstream.on('close', () => { if (connected) client.destroy() })
      client.on('close', () => upstream.destroy())
    }
    next(0)
  })
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    port: server.address().port,
    close () {
      for (const socket of sockets) socket.destroy()
      server.close()
    }
  }
}

// noteWhen has a page note when a text came into it, by the page's own watch: asking fifty pages takes a while.
export const noteWhen = (page, text) => page.evaluate((text) => {
  const seen = () => document.getElementById('page').textContent.includes(text) || document.getElementById('log').textContent.includes(text)
  window.noted = 0
  const look = () => { if (!window.noted && seen()) window.noted = Date.now() }
  new MutationObserver(look).observe(document.getElementById('live'), { childList: true, subtree: true })
}, text)
export const noted = (page) => page.evaluate(() => window.noted)

export const seqs = (page) => page.locator('#log .msg').evaluateAll((all) => all.map((m) => Number(m.id.slice(2))))

export function gapless (list, what) {
  for (let i = 1; i < list.length; i++) assert.equal(list[i], list[i - 1] + 1, `${what}: message ${list[i]} follows ${list[i - 1]}`)
}
