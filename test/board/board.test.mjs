import assert from 'node:assert/strict'
import { test, before, after } from 'node:test'
import {
  accessible, balancer, board, complaints, context, expected, gapless, live, mcp, must, newTask, noted, noteWhen, open, picture, remember, scene, seqs,
  signIn, start, stop, taskOf, until
} from './lib.mjs'

const roomPath = (name) => '/rooms/' + scene.rooms[name]

before(async () => {
  await start()
  const c = await context()
  const page = await c.newPage()
  await page.goto(scene.sign_in)
  await page.waitForURL(board + '/')
  await remember('admin', c)
  await c.close()
})

after(stop)

test('the link signs in once, and leaves no code in the address', async () => {
  expected.push(/401/)
  const c = await context()
  const page = await c.newPage()
  await page.goto(scene.sign_in)
  await page.getByText('The link was used already', { exact: false }).or(page.getByText('the link was used already', { exact: false })).waitFor()
  assert.ok(!page.url().includes('#'), page.url())
  const cookies = await c.cookies()
  assert.deepEqual(cookies, [])
  await accessible(page, 'the page to sign in')
  await c.close()
  expected.pop()
})

test('a claim by an agent at another replica appears within a second', async () => {
  const c = await context('admin')
  const page = await open(c, roomPath('work'))
  const id = await newTask('helper', 'work', 'Write the announcement', { assignee: scene.plates.helper })
  await page.locator('#t-' + id).waitFor()
  await until('the other replica to know the task', () => taskOf('helper', 'work', id, 1))
  const claimed = await must('helper', 'claim_task', { task_id: id }, 1)
  assert.equal(claimed.ok, true)
  const began = Date.now()
  await page.locator(`ul[id$="-doing"] #t-${id}`).waitFor()
  const took = Date.now() - began
  assert.ok(took < 1000, `the claim took ${took} ms to appear`)
  await page.locator(`#t-${id} time.until`).filter({ hasText: /^\d+:\d\d left$/ }).waitFor()
  console.log(`# a claim at another replica appeared after ${took} ms`)
  assert.equal(await page.locator('#t-' + id).count(), 1)

  const detail = await open(c, '/tasks/' + id)
  await detail.getByText('Held by').waitFor()
  await accessible(detail, 'a task')
  await must('helper', 'set_status', { task_id: id, status: 'done', summary: 'It is written.', artifacts: ['file:announcement.md'] }, 1)
  await detail.locator('#task-records').getByText('It is written.').waitFor()
  await page.locator(`ul[id$="-done"] #t-${id}`).waitFor()
  await c.close()
})

test('a proposal is accepted, and the agent claims it', async () => {
  const c = await context('admin')
  const page = await open(c, '/inbox')
  await page.getByText('Nothing waits for you.').waitFor()
  const id = await newTask('asker', 'work', 'Check the numbers', { assignee: scene.plates.helper, detail: 'All of them, please.' })
  const item = page.locator('#d-' + id)
  await item.waitFor()
  await item.getByText('may begin at once, in your name').waitFor()
  const refused = await mcp('helper', 'claim_task', { task_id: id })
  assert.equal(refused.error.code, 'CONSENT_REQUIRED')
  await accessible(page, 'the inbox of decisions')
  await picture(page, 'decisions')
  await item.getByRole('button', { name: 'Accept' }).click()
  await item.waitFor({ state: 'detached' })
  const claimed = await must('helper', 'claim_task', { task_id: id })
  assert.equal(claimed.ok, true)

  const second = await newTask('asker', 'work', 'Send my mail', { assignee: scene.plates.helper })
  const again = page.locator('#d-' + second)
  await again.getByLabel('Why not').fill('It is yours')
  await again.getByRole('button', { name: 'Reject' }).click()
  await again.waitFor({ state: 'detached' })
  await until('the rejection to be told', async () => (await taskOf('asker', 'work', second)).consent === 'rejected')
  await c.close()
})

test('a card is dragged to another agent, and a stuck claim is taken back', async () => {
  const c = await context('admin')
  const page = await open(c, roomPath('work'))
  const id = await newTask('helper', 'work', 'Drag me', { assignee: scene.plates.helper })
  const card = page.locator('#t-' + id)
  await card.waitFor()
  const lane = page.locator(`.lane[data-assignee="${scene.plates.second}"]`)
  await card.dragTo(lane.locator('h3'))
  await lane.locator('#t-' + id).waitFor()
  assert.equal((await taskOf('helper', 'work', id)).assignee, scene.plates.second)
  assert.equal(await card.count(), 1)

  await must('second', 'claim_task', { task_id: id })
  await lane.locator(`ul[id$="-doing"] #t-${id}`).waitFor()
  await page.locator('#k-' + id).click()
  await page.getByLabel('Why it is taken from').fill('It does not answer')
  await page.getByRole('button', { name: 'Take it back' }).click()
  await lane.locator(`ul[id$="-todo"] #t-${id}`).waitFor()
  const lost = await mcp('second', 'renew_lease', { task_id: id })
  assert.equal(lost.error.code, 'LEASE_LOST')
  await c.close()
})

test('everything is done by keyboard: a mention, a task, its priority, cancelling', async () => {
  const c = await context('admin')
  const page = await open(c, roomPath('work'))
  await page.keyboard.press('Tab')
  assert.equal(await page.evaluate(() => document.activeElement.textContent), 'Skip to the content')
  await page.keyboard.press('Enter')
  const reach = async (id) => {
    for (let i = 0; i < 80; i++) {
      await page.keyboard.press('Tab')
      if (await page.evaluate((id) => document.activeElement.id === id, id)) return
    }
    assert.fail(`the keyboard does not reach ${id}`)
  }
  await reach('b-new')
  const outline = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle)
  assert.equal(outline, 'solid', 'the focus is seen')
  await page.keyboard.press('Enter')
  await page.locator('#n-title:focus').waitFor()
  await accessible(page, 'the form for a task')
  await page.keyboard.type('Made by keyboard')
  await page.keyboard.press('Tab')
  await page.keyboard.press('Tab')
  await page.keyboard.type('It is there')
  await page.keyboard.press('Tab')
  await page.keyboard.type('@second')
  await page.keyboard.press('Tab')
  await page.keyboard.type('80')
  await page.keyboard.press('Enter')
  const card = page.locator('.card', { hasText: 'Made by keyboard' })
  await card.waitFor()
  const id = await card.getAttribute('data-task')
  const made = await taskOf('helper', 'work', id)
  assert.equal(made.assignee, scene.plates.second)

  await page.locator('#k-' + id).focus()
  await page.keyboard.press('Enter')
  await page.getByLabel('Why it is cancelled').focus()
  await page.keyboard.type('Not wanted')
  await page.keyboard.press('Enter')
  await page.locator(`ul[id$="-dropped"] #t-${id}`).waitFor()

  await page.locator('#text').focus()
  await page.keyboard.type('Please look, @hel')
  await page.locator('#who [aria-selected=true]', { hasText: '@helper' }).waitFor()
  await accessible(page, 'the completion of a mention')
  await page.keyboard.press('Enter')
  await page.keyboard.type('and answer')
  await page.keyboard.press('Control+Enter')
  await page.locator('.msg', { hasText: 'Please look, @helper(admin) and answer' }).waitFor()
  assert.equal(await page.locator('#text').inputValue(), '')
  let seen = []
  await until('the mention to reach the agent', async () => {
    seen = (await must('helper', 'check_mentions')).mentions
    return JSON.stringify(seen).includes('and answer')
  })
  await c.close()
})

test('what is hostile is shown as text', async () => {
  const c = await context('admin')
  const page = await open(c, roomPath('hostile'))
  const hostile = [
    '<script>window.hit = 1</script><img src=x onerror="window.hit = 2"><a href="javascript:window.hit=3">x</a>',
    '[click](javascript:window.hit=4) ![x](http://example.com/x.png) http://example.com/',
    'safe \u202Etxt.exe\u202C \u2066hidden\u2069 \u200Fright', 'x'.repeat(8000), '👩‍👩‍👧‍👦 🏳️‍🌈 🇩🇪',
    '</div></li></ol><h1>out</h1><div hx-get="/" hx-trigger="load" hx-swap-oob="innerHTML:#page">gone</div>',
    '{{.}} ${7*7} &lt;b&gt; <!-- --> <![CDATA[ ]]>', 'שלום עולם', 'data: x\n\nevent: bye\ndata: gone\n\nid: 7'
  ]
  for (const body of hostile) await must('helper', 'send_message', { room: scene.rooms.hostile, body, idempotency_key: 'h' + hostile.indexOf(body) })
  for (const body of hostile.slice(0, 3)) {
    await newTask('helper', 'hostile', body.slice(0, 200), { assignee: scene.plates.helper, detail: body, definition_of_done: body.slice(0, 1500) })
  }
  await newTask('helper', 'hostile', 'y'.repeat(250), { assignee: scene.plates.helper })
  await until('all messages', async () => (await page.locator('#log .msg.Agent').count()) === hostile.length)
  await until('all tasks', async () => (await page.locator('.card').count()) === 4)
  const bodies = await page.locator('#log .msg.Agent .body').allTextContents()
  assert.equal(bodies[0], hostile[0])
  assert.equal(bodies[1], hostile[1])
  assert.equal(bodies[2], 'safe ⟦RLO⟧txt.exe⟦PDF⟧ ⟦LRI⟧hidden⟦PDI⟧ ⟦RLM⟧right')
  // What the bridge refuses comes in past it, as a MessageBatch.
  assert.equal(await page.locator('#log .msg.Human .body').textContent(), '␛[31mred␛[0m ␇ <b>bold</b>')
  for (const i of [3, 4, 5, 6, 7, 8]) assert.equal(bodies[i], hostile[i])
  for (const again of [page, await open(c, roomPath('hostile'))]) {
    assert.equal(await again.evaluate(() => window.hit), undefined)
    assert.equal(await again.locator('#log a, #log img, #log script, #log h1').count(), 0)
    assert.equal(await again.locator('#page h1').count(), 1)
    assert.equal(await again.evaluate(() => document.documentElement.scrollWidth <= innerWidth), true, 'nothing sticks out')
    await accessible(again, 'hostile content')
  }
  const card = page.locator('.card a').first()
  await card.click()
  await page.waitForURL(/\/tasks\//)
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), true, 'nothing sticks out of a task')
  await c.close()
})

test('it is readable on a phone, in the dark, and without motion', async () => {
  const phone = await context('admin', {
    viewport: { width: 375, height: 720 }, isMobile: true, hasTouch: true, colorScheme: 'dark', reducedMotion: 'reduce'
  })
  for (const [path, name] of [[roomPath('work'), 'room'], ['/', 'rooms'], ['/inbox', 'inbox'], ['/agents', 'agents']]) {
    const page = await open(phone, path)
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 375, name + ' fits a phone')
    const dark = await page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor)
    assert.equal(dark, 'rgb(21, 24, 22)')
    await accessible(page, name + ' on a phone in the dark')
    if (name === 'room') {
      await page.getByRole('link', { name: 'Messages' }).tap()
      await page.locator('#text').fill('From a phone')
      await page.getByRole('button', { name: 'Send', exact: true }).tap()
      await page.locator('.msg', { hasText: 'From a phone' }).waitFor()
      const moves = await page.evaluate(() => [...document.querySelectorAll('*')].filter((el) => {
        const style = getComputedStyle(el)
        return style.transitionDuration !== '0s' || style.animationName !== 'none'
      }).length)
      assert.equal(moves, 0, 'nothing moves')
      await picture(page, 'board-phone')
    }
    await page.close()
  }
  await phone.close()
  const desk = await context('admin')
  const settings = await desk.newPage()
  for (const path of [roomPath('work') + '/consent', roomPath('work') + '/tasks', '/agents', '/']) {
    await settings.goto(board + path)
    await accessible(settings, path)
  }
  await desk.close()
})

test('consent is set in plain words, and a room is paused', async () => {
  const c = await context('admin')
  const page = await c.newPage()
  await page.goto(board + roomPath('work') + '/consent')
  await page.getByLabel('Trust the people I name').check()
  await page.getByLabel('maya').check()
  await page.getByRole('button', { name: 'Save' }).click()
  await page.locator('.toast', { hasText: 'Saved' }).waitFor()
  const id = await newTask('asker', 'work', 'Trusted work', { assignee: scene.plates.helper })
  await until('the task to be taken unasked', async () => (await taskOf('asker', 'work', id)).consent === 'accepted')
  const room = await open(c, roomPath('work'))
  await room.getByRole('button', { name: 'Pause' }).click()
  await room.locator('#room-head .tag', { hasText: 'Paused' }).waitFor()
  await until('agents to be refused', async () =>
    (await mcp('helper', 'send_message', { room: scene.rooms.work, body: 'x' })).error?.code === 'ROOM_NOT_ACTIVE')
  await room.getByRole('button', { name: 'Make active' }).click()
  await room.locator('#b-pause').waitFor()
  await picture(room, 'board')
  await c.close()
  const dark = await context('admin', { colorScheme: 'dark' })
  await picture(await open(dark, roomPath('work')), 'board-dark')
  await dark.close()
})

test('who may do nothing sees nothing, who may read sees no controls, and the server refuses anyway', async () => {
  const stranger = await signIn('stranger', scene.people.stranger)
  await stranger.page.getByText('There is no room that you may see').waitFor()
  expected.push(/404/)
  await stranger.page.goto(board + roomPath('work'))
  await stranger.page.getByText('there is no such room, or you may not see it').waitFor()
  expected.pop()
  await stranger.c.close()

  const reader = await signIn('reader', scene.people.reader)
  const page = await open(reader.c, roomPath('work'))
  await page.locator('#log .msg').first().waitFor()
  assert.ok(await page.locator('.card').count() > 0)
  for (const control of ['#composer', '#b-new', '#b-pause', '.card .menu', '.card[draggable]']) {
    assert.equal(await page.locator(control).count(), 0, control + ' is shown to a reader')
  }
  expected.push(/403/)
  const id = await page.locator('.card').first().getAttribute('data-task')
  const tried = await page.evaluate(async ({ id, room }) => {
    const token = JSON.parse(document.body.getAttribute('hx-headers'))['X-Csrf-Token']
    const post = async (path, body, csrf) => (await fetch(path, {
      method: 'POST', headers: { 'X-Csrf-Token': csrf }, body: new URLSearchParams(body)
    })).status
    return [
      await post(`/rooms/${room}/messages`, { text: 'x' }, token), await post(`/tasks/${id}/assign`, { assignee: '' }, token),
      await post(`/tasks/${id}/priority`, { priority: '7' }, token), await post(`/rooms/${room}/state`, { state: 'Paused' }, token),
      await post(`/rooms/${room}/tasks`, { title: 'x', done: 'x' }, token), await post('/signout', {}, 'wrong')
    ]
  }, { id, room: scene.rooms.work })
  assert.deepEqual(tried, [403, 403, 403, 403, 403, 403])
  expected.pop()
  await accessible(page, 'what a reader sees')
  await reader.c.close()
})

test('a large room paints within a second, loads more, and keeps its page small', async () => {
  const c = await context('admin')
  const page = await open(c, roomPath('large'))
  const paint = await page.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0].startTime)
  console.log(`# 500 tasks and 5,000 messages: first paint after ${Math.round(paint)} ms`)
  assert.ok(paint < 1000, `first paint after ${paint} ms`)
  await until('the end of the log', async () => (await seqs(page)).at(-1) === 5000)
  const log = page.locator('#log')
  let first = (await seqs(page))[0]
  for (let i = 0; i < 9; i++) {
    await log.evaluate((el) => { el.scrollTop = 0 })
    await until('older messages', async () => (await seqs(page))[0] < first)
    const shown = await seqs(page)
    gapless(shown, 'scrolled back')
    assert.ok(shown.length <= 350, `${shown.length} messages in the page`)
    first = shown[0]
  }
  assert.ok(first <= 5000 - 450, `scrolling came to ${first} only`)
  await page.getByRole('button', { name: 'To the latest messages' }).click()
  await until('the end of the log again', async () => (await seqs(page)).at(-1) === 5000)
  await page.locator('#text').fill('At the end')
  await page.getByRole('button', { name: 'Send', exact: true }).click()
  await until('the new message', async () => (await seqs(page)).at(-1) >= 5001)
  gapless(await seqs(page), 'after coming back')

  assert.ok(await page.locator('.card').count() <= 80, 'a board shows the first of each cell')
  const nodes = await page.evaluate(() => document.getElementsByTagName('*').length)
  assert.ok(nodes < 8000, `${nodes} elements`)
  await page.locator('#more-nobody-todo a').click()
  await until('the first tasks', async () => (await page.locator('#tasks .card').count()) >= 50)
  for (let i = 0; i < 3; i++) {
    const had = await page.locator('#tasks .card').count()
    await page.evaluate(() => window.scrollTo(0, document.body.scrollHeight))
    await until('more tasks', async () => (await page.locator('#tasks .card').count()) > had)
  }
  await c.close()
})

test('fifty pages are live again within five seconds when their replica is killed', async (t) => {
  const way = await balancer()
  t.after(() => way.close())
  expected.push(/ERR_|sseError|EventSource|\[object Event\]|503/) // a replica that is starting says so
  const c = await context('admin')
  c.setDefaultTimeout(60000) // to open fifty pages takes a while, and is not what is measured
  const [cookie] = await c.cookies(board)
  // A browser opens six connections to a host at most, so each page has a host of its own.
  const hosts = Array.from({ length: 50 }, (_, i) => `page${i}`)
  await c.addCookies(hosts.map((domain) => ({ ...cookie, domain })))
  const pages = []
  for (let i = 0; i < hosts.length; i += 10) {
    pages.push(...await Promise.all(hosts.slice(i, i + 10).map((host) => open(c, roomPath('watched'), `http://${host}:${way.port}`))))
  }
  await must('helper', 'send_message', { room: scene.rooms.watched, body: 'before the kill' }, 1)
  await Promise.all(pages.map((page) => page.locator('.msg', { hasText: 'before the kill' }).waitFor()))

  await Promise.all(pages.map((page) => noteWhen(page, 'Made meanwhile')))
  process.kill(scene.pids['bridge-0'], 'SIGKILL')
  const began = Date.now()
  await must('helper', 'send_message', { room: scene.rooms.watched, body: 'while they were away' }, 1)
  const made = await must('helper', 'create_task', { room: scene.rooms.watched, title: 'Made meanwhile', definition_of_done: 'x', assignee: scene.plates.helper }, 1)
  await Promise.all(pages.map((page) => live(page, 2)))
  await Promise.all(pages.map((page) => page.locator('.msg', { hasText: 'while they were away' }).waitFor()))
  await Promise.all(pages.map((page) => page.locator('#t-' + made.task_id).waitFor()))
  const took = Math.max(...await Promise.all(pages.map(noted))) - began
  assert.ok(took > 0, 'the pages lived before the kill')
  console.log(`# fifty pages were live again after ${took} ms`)
  assert.ok(took < 5000, `it took ${took} ms`)
  await must('helper', 'send_message', { room: scene.rooms.watched, body: 'and after' }, 1)
  await Promise.all(pages.map((page) => page.locator('.msg', { hasText: 'and after' }).waitFor()))
  for (const [i, page] of pages.entries()) {
    gapless(await seqs(page), 'page ' + i)
    assert.equal(await page.locator('.card').count(), 1, 'nothing is doubled')
  }
  await c.close()
  expected.pop()
})

test('no page complained, and no request left the host', () => {
  assert.deepEqual([...new Set(complaints)].slice(0, 10), [])
})
