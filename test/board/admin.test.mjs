// What the admin of a namespace does on the board, with the rights of a role and not of the cluster's administrator.
import assert from 'node:assert/strict'
import { test, before, after } from 'node:test'
import { complaints, mcp, newTask, open, scene, signIn, start, stop, until } from './lib.mjs'

before(start)
after(stop)

test('the admin of a namespace sees every control: a task is reprioritised, cancelled, opened again and archived, and the room is archived', async () => {
  const { c } = await signIn('boss', scene.people.boss)
  const page = await open(c, '/rooms/' + scene.rooms.attic)
  const id = await newTask('helper', 'attic', 'Sort the attic', { assignee: scene.plates.helper })
  const card = page.locator('#t-' + id)
  await card.waitFor()
  for (const control of ['#composer', '#b-new', '#b-pause', '#b-archive', '#b-files', '.card[draggable]']) {
    assert.equal(await page.locator(control).count(), 1, control + ' is not shown to an admin')
  }
  const menu = async () => {
    await page.locator('#k-' + id).click()
    await page.locator('#dialog-title').waitFor()
  }
  await menu()
  await page.getByLabel('Priority, 0 to 100').fill('90')
  await page.getByRole('button', { name: 'Change' }).click()
  await card.getByText('P90').waitFor()
  await menu()
  await page.getByLabel('Why it is cancelled').fill('Not now')
  await page.getByRole('button', { name: 'Cancel the task' }).click()
  await page.locator(`ul[id$="-dropped"] #t-${id}`).waitFor()
  await menu()
  await page.getByRole('button', { name: 'Open again' }).click()
  await page.locator(`ul[id$="-todo"] #t-${id}`).waitFor()
  await menu()
  await page.getByLabel('Why it is cancelled').fill('Never')
  await page.getByRole('button', { name: 'Cancel the task' }).click()
  await page.locator(`ul[id$="-dropped"] #t-${id}`).waitFor()
  await menu()
  await page.getByRole('dialog').getByRole('button', { name: 'Archive' }).click()
  await card.waitFor({ state: 'detached' })
  page.on('dialog', (d) => d.accept())
  await page.locator('#b-archive').click()
  await page.locator('#room-head .tag', { hasText: 'Archived' }).waitFor()
  await until('agents to be refused', async () =>
    (await mcp('helper', 'send_message', { room: scene.rooms.attic, body: 'x' })).error?.code === 'ROOM_NOT_ACTIVE')
  assert.equal(await page.locator('#b-new').count(), 0, 'an archived room is for reading')
  await c.close()
})

test('no page of an admin complained, and no request left the host', () => {
  assert.deepEqual([...new Set(complaints)].slice(0, 10), [])
})
