// Focus describes the element that has the focus. In other modes, it lists the controls of the page, or counts the
// stops before the next control with a name.
(() => {
  const kinds = 'a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex="0"]'
  const all = [...document.querySelectorAll('*')]
  const shown = (element) => element.checkVisibility({ checkVisibilityCSS: true }) && !element.closest('[inert]')
  const text = (element) => element.innerText || element.textContent || ''

  function name(element) {
    const ids = (element.getAttribute('aria-labelledby') || '').split(/\s+/).filter(Boolean)
    const label = [...(element.labels || [])].map((each) => {
      const copy = each.cloneNode(true)
      copy.querySelectorAll('input, select, textarea').forEach((field) => field.remove())
      return copy.textContent
    }).join(' ')
    const names = [
      ids.map((id) => text(document.getElementById(id))).join(' '), element.getAttribute('aria-label'), label,
      element.matches('input[type=submit]') ? element.value : '',
      element.matches('input, select, textarea') ? '' : text(element), element.title,
    ]
    return (names.find((each) => each && each.trim()) || '').trim().replace(/\s+/g, ' ')
  }
  const describe = (element) => `<${element.localName}> ${all.indexOf(element)} ${JSON.stringify(name(element).slice(0, 60))}`

  // Radio buttons of a group are one stop, and so is a list that its first entry represents.
  const stops = () => [...document.querySelectorAll(kinds)]
    .filter((element) => !element.disabled && element.tabIndex >= 0 && shown(element) && element.type !== 'radio')
  const controls = () => Object.fromEntries(stops().map((element) => [describe(element), describe(element)]))

  // There may be more stops: a field for a time has several. 0 if there is no such control, or it has the focus.
  function before(wanted) {
    const from = document.activeElement
    if (name(from) === wanted) return 0
    const ahead = stops().filter((element) => from === document.body ||
      from.compareDocumentPosition(element) & Node.DOCUMENT_POSITION_FOLLOWING)
    return Math.max(0, ahead.findIndex((element) => name(element) === wanted))
  }

  function indicator(element) {
    // At its last stop in such a field, the browser shows the focus on the button that opens the calendar.
    if (/date|time|month|week/.test(element.type) && !element.matches(':focus-visible')) return true
    const style = getComputedStyle(element)
    if (style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 1) return true
    return style.boxShadow !== 'none'
  }
  function covered(element) {
    const boxes = [...element.getClientRects()]
    return !boxes.some((box) => {
      // The middle of the part that is in the window: a region that scrolls can be larger.
      const [left, right] = [Math.max(box.left, 0), Math.min(box.right, innerWidth)]
      const [upper, bottom] = [Math.max(box.top, 0), Math.min(box.bottom, innerHeight)]
      const [x, y] = [(left + right) / 2, (upper + bottom) / 2]
      const top = document.elementFromPoint(x, y)
      return top && (element.contains(top) || top.contains(element) || [...(element.labels || [])].includes(top))
    })
  }

  /* MODE */
  const element = document.activeElement
  if (!element || element === document.body || element === document.documentElement) {
    return { name: '', element: '', index: -1, indicator: true, covered: false }
  }
  return {
    name: name(element), element: describe(element), index: all.indexOf(element),
    indicator: indicator(element), covered: covered(element),
  }
})()
