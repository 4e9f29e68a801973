// The files of a room, as people see them.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test, before, after } from 'node:test'
import { accessible, board, complaints, context, expected, must, open, picture, scene, signIn, start, stop, until } from './lib.mjs'

const room = '/rooms/' + scene.rooms.files
const write = (path, content, more = {}) => must('helper', 'write_file', { room: scene.rooms.files, path, content, ...more }, 1)

before(start)
after(stop)

async function reader () {
  const { c, page } = await signIn('reader', scene.people.reader)
  await page.close()
  return c
}

test('a file that an agent writes appears within a second, and so does its next version', async () => {
  const c = await reader()
  const page = await open(c, room + '/files')
  await page.getByText('There are no files yet').waitFor()
  const made = await write('launch/plan.md', '# The plan\n\n1. Write it\n2. Ship it\n')
  let began = Date.now()
  await page.locator('#files', { hasText: 'launch/' }).waitFor()
  const took = Date.now() - began
  console.log(`# a file at another replica appeared after ${took} ms`)
  assert.ok(took < 1000, `the file took ${took} ms to appear`)
  await page.getByRole('link', { name: 'launch/' }).click()
  await page.getByRole('link', { name: 'plan.md' }).click()
  await page.waitForURL(board + '/files/' + made.file_id)
  await page.waitForFunction(() => document.getElementById('live').dataset.open)
  assert.equal(await page.locator('pre.text').textContent(), '# The plan\n\n1. Write it\n2. Ship it')
  assert.equal(await page.locator('pre.nums').textContent(), '1\n2\n3\n4')
  await write('launch/plan.md', '# The plan\n\n1. Write it\n2. Ship it\n3. Tell people\n')
  began = Date.now()
  await page.locator('pre.text', { hasText: 'Tell people' }).waitFor()
  assert.ok(Date.now() - began < 1000, 'the next version is shown at once')
  assert.equal(await page.locator('#versions .version').count(), 2)
  await accessible(page, 'a file')
  await picture(page, 'files')
  await page.locator('#va-1').click()
  await page.getByText('This is an earlier version.').waitFor()
  assert.ok(!(await page.locator('pre.text').textContent()).includes('Tell people'))
  await c.close()
})

test('hostile names and contents are text, and are downloaded as nothing that runs', async () => {
  const c = await reader()
  const script = '<script>window.hit = 1</script><img src=x onerror="window.hit = 2">\u202Egnp.exe\n</pre><h1>out</h1>'
  const svg = '<svg xmlns="http://www.w3.org/2000/svg" onload="window.hit = 3"><script>window.hit = 4</script></svg>'
  const named = await write('<img src=x onerror=window.hit=5>.html', script, { content_type: 'text/html' })
  const drawn = await write('logo.svg', svg, { content_type: 'image/svg+xml' })
  await write('bytes.bin', 'AAECAwQF', { encoding: 'base64', content_type: 'application/octet-stream' })
  const page = await open(c, room + '/files')
  await page.locator('#files', { hasText: '<img src=x onerror=window.hit=5>.html' }).waitFor()
  await accessible(page, 'the list of files')
  for (const [id, content] of [[named.file_id, script.replace('\u202E', '⟦RLO⟧')], [drawn.file_id, svg]]) {
    await page.goto(board + '/files/' + id)
    assert.equal(await page.locator('pre.text').textContent(), content)
    assert.equal(await page.locator('#page h1').count(), 1)
    assert.equal(await page.evaluate(() => window.hit), undefined)
    const got = await c.request.get(`${board}/files/${id}/download?version=1`)
    assert.equal(got.status(), 200)
    assert.match(got.headers()['content-disposition'], /^attachment/)
    assert.equal(got.headers()['content-type'], 'application/octet-stream')
    assert.equal(got.headers()['x-content-type-options'], 'nosniff')
    assert.match(got.headers()['content-security-policy'], /sandbox/)
  }
  await page.goto(board + room + '/files')
  await page.getByRole('link', { name: 'bytes.bin' }).click()
  await page.getByText('This is no text').waitFor()
  await c.close()
})

test('a long text comes in parts, and its lines keep their numbers', async () => {
  const c = await reader()
  const lines = Array.from({ length: 6000 }, (_, i) => `line ${i + 1} of many in this long file`)
  const made = await write('long.txt', lines.join('\n') + '\n')
  const page = await open(c, '/files/' + made.file_id)
  for (let parts = 1; await page.getByRole('button', { name: 'Load more' }).count(); parts++) {
    await page.getByRole('button', { name: 'Load more' }).click()
    await until('the next part', async () => (await page.locator('.chunk').count()) > parts)
  }
  const shown = (await page.locator('pre.text').allTextContents()).join('\n')
  assert.equal(shown, lines.join('\n'))
  const numbers = (await page.locator('pre.nums').allTextContents()).join('\n')
  assert.equal(numbers, lines.map((_, i) => i + 1).join('\n'))
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), true, 'nothing sticks out')
  await c.close()
})

test('uploads under way and in quarantine are shown as such, and deleted files are gone', async () => {
  const c = await reader()
  const page = await open(c, room + '/files')
  const announce = (filename, text) => must('helper', 'share_file', {
    room: scene.rooms.files, filename, content_type: 'text/plain', size_bytes: 4, sha256: createHash('sha256').update(text).digest('hex')
  })
  const shared = await announce('upload.txt', 'what was said')
  const row = page.locator('.file', { hasText: 'upload.txt' })
  await row.getByText('upload pending').waitFor()
  const put = await fetch(shared.upload_url, { method: 'PUT', headers: shared.headers, body: 'else' })
  if (put.ok) await must('helper', 'complete_file_upload', { file_id: shared.file_id })
  if (put.ok) {
    await row.getByText('quarantined').waitFor()
    await row.getByRole('link').click()
    await page.getByText('Nobody can read it.').waitFor()
    await accessible(page, 'a file in quarantine')
  }
  const doomed = await write('doomed.txt', 'soon gone')
  const list = await open(c, room + '/files?find=doomed')
  await list.locator('.file', { hasText: 'doomed.txt' }).waitFor()
  await must('helper', 'delete_file', { room: scene.rooms.files, path: 'doomed.txt' }, 1)
  await list.getByText('There is no such file').waitFor()
  expected.push(/404/)
  assert.equal((await list.goto(board + '/files/' + doomed.file_id)).status(), 404)
  expected.pop()
  await c.close()
})

test('who may list files reads none of them, and who may do nothing is told of none', async () => {
  const made = await write('secret.txt', 'the contents')
  const lister = await signIn('lister', scene.people.lister)
  const page = await open(lister.c, '/files/' + made.file_id)
  await page.getByText('You may not read what is in files here').waitFor()
  assert.ok(!(await page.content()).includes('the contents'))
  assert.equal(await page.getByRole('link', { name: 'Download' }).count(), 0)
  for (const path of ['/download?version=1', '/text?version=1&offset=0&line=1']) {
    assert.equal((await lister.c.request.get(`${board}/files/${made.file_id}${path}`)).status(), 403)
  }
  await lister.c.close()
  const stranger = await signIn('stranger', scene.people.stranger)
  for (const path of [room + '/files', '/files/' + made.file_id, `/files/${made.file_id}/download?version=1`]) {
    assert.equal((await stranger.c.request.get(board + path)).status(), 404)
  }
  await stranger.c.close()
})

test('files fit a phone in the dark', async () => {
  const signed = await signIn('reader', scene.people.reader)
  await signed.c.close()
  const phone = await context('reader', { viewport: { width: 375, height: 720 }, isMobile: true, hasTouch: true, colorScheme: 'dark', reducedMotion: 'reduce' })
  const page = await open(phone, room + '/files')
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 375)
  await accessible(page, 'files on a phone in the dark')
  await page.getByRole('link', { name: 'long.txt' }).tap()
  await page.locator('pre.text').waitFor()
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 375)
  await accessible(page, 'a file on a phone in the dark')
  await phone.close()
})

test('no page of files complained, and no request left the host', () => {
  assert.deepEqual([...new Set(complaints)].slice(0, 10), [])
})
