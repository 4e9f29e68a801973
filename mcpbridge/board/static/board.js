// What the board's pages do beyond htmx: times, the log, mentions, dragging, dialogs, and the life of the stream.
(function () {
  'use strict'

  const $ = (id) => document.getElementById(id)
  const maxMessages = 300 // in the page; older ones are loaded again when somebody scrolls back
  const hiddenFor = 10000 // ms after which a page that nobody sees lets go of its stream

  // ---- times ----
  const meta = document.querySelector('meta[name=server-time]')
  const skew = meta ? Date.parse(meta.content) - Date.now() : 0
  const now = () => Date.now() + skew
  const clock = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit' })
  const day = new Intl.DateTimeFormat(undefined, { month: 'short', day: 'numeric', hour: '2-digit', minute: '2-digit' })

  function showTime (el) {
    const at = new Date(el.dateTime)
    if (isNaN(at)) return
    if (!el.title) el.title = at.toString()
    if (el.classList.contains('until')) {
      const left = Math.floor((at - now()) / 1000)
      const text = left < 0 ? 'over' : Math.floor(left / 60) + ':' + String(left % 60).padStart(2, '0') + ' left'
      if (el.textContent !== text) el.textContent = text
      return
    }
    const text = (at.toDateString() === new Date().toDateString() ? clock : day).format(at)
    if (el.textContent !== text) el.textContent = text
  }

  function showTimes (root) {
    if (root.matches && root.matches('time')) showTime(root)
    for (const el of root.querySelectorAll('time')) showTime(el)
  }

  setInterval(function () {
    if (!document.hidden) for (const el of document.querySelectorAll('time.until')) showTime(el)
  }, 1000)

  // ---- notices ----
  function fade (toast) {
    setTimeout(function () {
      toast.classList.add('out')
      setTimeout(() => toast.remove(), 400)
    }, toast.classList.contains('bad') ? 12000 : 5000)
  }

  // ---- the log ----
  const log = $('log')
  const newer = $('newer')
  let pinned = true
  let detached = false // the page shows old messages, and new ones are not added to them
  let olderHeight = -1

  const atEnd = () => log.scrollHeight - log.scrollTop - log.clientHeight < 60

  function trimTop () {
    const list = log.querySelectorAll('.msg')
    const extra = list.length - maxMessages
    if (extra <= 0) return
    const first = list[extra]
    while (log.firstElementChild !== first) log.firstElementChild.remove()
    const older = document.createElement('div')
    older.id = 'older'
    older.className = 'older'
    older.setAttribute('hx-get', '/rooms/' + $('live').dataset.room + '/log?before=' + first.id.slice(2))
    older.setAttribute('hx-trigger', 'intersect once root:#log')
    older.setAttribute('hx-swap', 'outerHTML')
    older.append('Older messages')
    log.prepend(older)
    htmx.process(older)
  }

  function detach () {
    detached = true
    newer.hidden = false
  }

  function logChanged () {
    if (olderHeight >= 0) { // older messages came in at the top: what was seen stays where it was
      log.scrollTop += log.scrollHeight - olderHeight
      olderHeight = -1
      const list = log.querySelectorAll('.msg')
      for (let i = maxMessages; i < list.length; i++) list[i].remove()
      if (list.length > maxMessages) detach()
      return
    }
    if (pinned) {
      trimTop()
      log.scrollTop = log.scrollHeight
    } else if (log.querySelectorAll('.msg').length > maxMessages + 100) detach()
  }

  if (log) {
    log.scrollTop = log.scrollHeight
    log.addEventListener('scroll', function () { pinned = !detached && atEnd() }, { passive: true })
    window.addEventListener('resize', function () { if (pinned) log.scrollTop = log.scrollHeight }) // a phone's keyboard too
    new MutationObserver(logChanged).observe(log, { childList: true })
    newer.addEventListener('click', function () {
      detached = false
      pinned = true
      newer.hidden = true
      log.replaceChildren()
      connect(String(cursor).replace(/\.\d+\./, '.0.')) // the server then gives the end of the log
      log.focus()
    })
    document.body.addEventListener('htmx:oobBeforeSwap', function (e) {
      if (e.detail.target === log && detached) e.detail.shouldSwap = false
    })
    document.body.addEventListener('htmx:beforeSwap', function (e) {
      if (e.detail.target && e.detail.target.id === 'older' && log.contains(e.detail.target)) olderHeight = log.scrollHeight
    })
  }

  // ---- the stream ----
  const live = $('live')
  const sink = $('sink')
  const offline = $('offline')
  let source = null
  let cursor = live ? new URL(live.getAttribute('sse-connect'), location.href).searchParams.get('at') : ''
  let trouble = 0
  let hiding = 0

  if (live) {
    const aim = function (at) {
      const address = new URL(live.getAttribute('sse-connect'), location.href)
      address.searchParams.set('at', at)
      cursor = at
      live.setAttribute('sse-connect', address.pathname + address.search)
    }
    // Only one stream is ever open, whoever opens it.
    htmx.createEventSource = function (url) {
      if (source) source.close()
      source = new EventSource(url)
      return source
    }
    // connect opens the stream anew from what the page shows.
    var connect = function (at) {
      aim(at)
      htmx.trigger(live, 'htmx:afterProcessNode')
      htmx.trigger(sink, 'htmx:afterProcessNode')
    }
    document.body.addEventListener('htmx:sseMessage', function (e) {
      if (e.detail.lastEventId) aim(e.detail.lastEventId)
    })
    document.body.addEventListener('htmx:sseOpen', function () {
      clearTimeout(trouble)
      trouble = 0
      offline.hidden = true
      live.dataset.open = String(Number(live.dataset.open || 0) + 1)
    })
    document.body.addEventListener('htmx:sseError', function () {
      // A refusal, as by a replica that is starting or a proxy that has none, ends a stream for good: ask again soon, not all at once.
      if (source && source.readyState === EventSource.CLOSED && !hiding) {
        setTimeout(function () {
          if (source.readyState === EventSource.CLOSED && !hiding) connect(cursor)
        }, 300 + Math.random() * 700)
      }
      if (!trouble && !hiding) trouble = setTimeout(function () { offline.hidden = false }, 2500)
    })
    document.body.addEventListener('htmx:sseClose', function (e) {
      if (e.detail.type === 'message') location.reload() // the server says why when the page is asked for again
    })
    document.addEventListener('visibilitychange', function () {
      if (document.hidden) {
        hiding = setTimeout(function () { if (source) source.close() }, hiddenFor)
        return
      }
      clearTimeout(hiding)
      hiding = 0
      if (source && source.readyState === EventSource.CLOSED) connect(cursor)
    })
  }

  // ---- dialogs and forms ----
  const dialog = $('dialog')
  document.body.addEventListener('htmx:afterSwap', function (e) {
    if (e.detail.target && e.detail.target.id === 'dialog-body' && !dialog.open) dialog.showModal()
  })
  dialog.addEventListener('click', function (e) {
    if (e.target === dialog || e.target.closest('[data-close]')) dialog.close()
  })
  dialog.addEventListener('close', function () { $('dialog-body').replaceChildren() })
  document.body.addEventListener('htmx:afterRequest', function (e) {
    const form = e.detail.elt
    if (!e.detail.successful || !form.matches) return
    if (form.matches('dialog [data-done]')) dialog.close()
    if (form.matches('[data-reset]')) {
      form.reset()
      $('mentions').replaceChildren()
      answer('', '')
      $('text').focus()
    }
  })

  // ---- sending ----
  function answer (id, from) {
    const line = $('answering')
    if (!line) return
    line.hidden = !id
    $('parent').value = id
    line.querySelector('span').textContent = id ? 'Answers ' + from : ''
    if (id) $('text').focus()
  }

  function mention (alias, plate) {
    for (const chip of $('mentions').children) if (chip.dataset.plate === plate) return
    const chip = document.createElement('li')
    chip.className = 'chip'
    chip.dataset.plate = plate
    const name = document.createElement('bdi')
    name.textContent = alias
    const field = document.createElement('input')
    field.type = 'hidden'
    field.name = 'mention'
    field.value = plate
    const gone = document.createElement('button')
    gone.type = 'button'
    gone.textContent = '×'
    gone.setAttribute('aria-label', 'Do not mention ' + alias)
    gone.addEventListener('click', function () { chip.remove(); $('text').focus() })
    chip.append(name, field, gone)
    $('mentions').append(chip)
  }

  const text = $('text')
  if (text) {
    const box = $('who')
    const people = Array.from($('people').children, (li) => ({ alias: li.dataset.alias, plate: li.dataset.plate }))
    let chosen = 0
    const asked = () => /(?:^|\s)@([^\s@]*)$/.exec(text.value.slice(0, text.selectionStart))

    const hide = function () {
      box.hidden = true
      box.replaceChildren()
      text.removeAttribute('aria-activedescendant')
    }
    const mark = function (n) {
      const items = box.children
      chosen = (n + items.length) % items.length
      for (let i = 0; i < items.length; i++) items[i].setAttribute('aria-selected', String(i === chosen))
      text.setAttribute('aria-activedescendant', items[chosen].id)
      items[chosen].scrollIntoView({ block: 'nearest' })
    }
    const take = function (item) {
      const found = asked()
      if (!found) return
      const end = text.selectionStart
      const start = end - found[1].length - 1
      text.setRangeText(item.dataset.alias + ' ', start, end, 'end')
      mention(item.dataset.alias, item.dataset.plate)
      hide()
      text.focus()
    }
    const offer = function () {
      const found = asked()
      if (!found) return hide()
      const wanted = found[1].toLowerCase()
      const fitting = people.filter((p) => p.alias.slice(1).toLowerCase().includes(wanted)).slice(0, 8)
      if (!fitting.length) return hide()
      box.replaceChildren(...fitting.map(function (p, i) {
        const item = document.createElement('li')
        item.id = 'who-' + i
        item.setAttribute('role', 'option')
        item.dataset.alias = p.alias
        item.dataset.plate = p.plate
        item.textContent = p.alias
        item.addEventListener('mousedown', function (e) { e.preventDefault(); take(item) })
        return item
      }))
      box.hidden = false
      mark(0)
    }
    text.addEventListener('input', offer)
    text.addEventListener('blur', hide)
    text.addEventListener('keydown', function (e) {
      if (!box.hidden && ['ArrowDown', 'ArrowUp', 'Enter', 'Tab', 'Escape'].includes(e.key) && !e.ctrlKey) {
        e.preventDefault()
        if (e.key === 'Escape') hide()
        else if (e.key === 'ArrowDown') mark(chosen + 1)
        else if (e.key === 'ArrowUp') mark(chosen - 1)
        else take(box.children[chosen])
      } else if (e.key === 'Enter' && (e.ctrlKey || e.metaKey)) {
        e.preventDefault()
        text.form.requestSubmit()
      }
    })
    $('no-answer').addEventListener('click', () => answer('', ''))
  }
  document.body.addEventListener('click', function (e) {
    const button = e.target.closest('[data-answer]')
    if (button) answer(button.dataset.answer, button.dataset.from)
  })

  // ---- dragging a card into another agent's lane ----
  let dragged = null
  const over = (lane) => { for (const l of document.querySelectorAll('.lane')) l.classList.toggle('over', l === lane) }
  document.body.addEventListener('dragstart', function (e) {
    const card = e.target.closest && e.target.closest('.card[draggable]')
    if (!card) return
    dragged = card.dataset.task
    e.dataTransfer.effectAllowed = 'move'
    e.dataTransfer.setData('text/plain', card.dataset.task)
    card.classList.add('dragged')
  })
  document.body.addEventListener('dragover', function (e) {
    const lane = dragged && e.target.closest('.lane')
    if (!lane) return
    e.preventDefault()
    over(lane)
  })
  document.body.addEventListener('dragend', function () {
    dragged = null
    over(null)
    for (const card of document.querySelectorAll('.card.dragged')) card.classList.remove('dragged')
  })
  document.body.addEventListener('drop', function (e) {
    const lane = dragged && e.target.closest('.lane')
    if (!lane) return
    e.preventDefault()
    const card = $('t-' + dragged)
    if (card && lane.contains(card)) return
    htmx.ajax('POST', '/tasks/' + dragged + '/assign', {
      source: document.body, target: document.body, swap: 'none', values: { assignee: lane.dataset.assignee }
    })
  })

  // ---- signing in by a link ----
  const codeForm = $('code-form')
  if (codeForm && location.hash.length > 1) {
    $('code').value = location.hash.slice(1)
    history.replaceState(null, '', location.pathname)
    codeForm.submit()
  }

  // ---- what comes in ----
  showTimes(document)
  new MutationObserver(function (records) {
    for (const record of records) {
      for (const node of record.addedNodes) {
        if (node.nodeType !== Node.ELEMENT_NODE) continue
        showTimes(node)
        if (node.classList.contains('toast')) fade(node)
      }
    }
  }).observe(document.body, { childList: true, subtree: true })
})()
