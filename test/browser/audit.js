// Audit returns what is wrong with the accessibility of this page, as sentences: WCAG 2.2 AA where a computer can decide.
(() => {
  const problems = []
  const report = (element, text) => problems.push(describe(element) + ': ' + text)

  function describe(element) {
    if (element === document.documentElement) return 'page'
    const id = element.id ? '#' + element.id : ''
    const classes = [...element.classList].map((name) => '.' + name).join('')
    const text = (element.textContent || element.value || '').trim().replace(/\s+/g, ' ').slice(0, 40)
    return `<${element.localName}${id}${classes}> ${JSON.stringify(text)}`
  }

  // Elements in a closed <details> have no boxes, and those clipped to a pixel are for screen readers.
  function visible(element) {
    if (!element.checkVisibility({ checkOpacity: true, checkVisibilityCSS: true })) return false
    const box = element.getBoundingClientRect()
    return box.width > 1 && box.height > 1
  }

  // Kept returns a function that computes each result once.
  function kept(compute) {
    const results = new Map()
    return (key) => {
      if (!results.has(key)) results.set(key, compute(key))
      return results.get(key)
    }
  }

  // Colors are computed by the canvas, which understands every notation.
  const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true })
  const parse = kept((color) => {
    canvas.clearRect(0, 0, 1, 1)
    canvas.fillStyle = color
    canvas.fillRect(0, 0, 1, 1)
    const [red, green, blue, alpha] = canvas.getImageData(0, 0, 1, 1).data
    return [red, green, blue, alpha / 255]
  })
  const over = (top, below) => [0, 1, 2].map((i) => top[i] * top[3] + below[i] * (1 - top[3]))
  function luminance(color) {
    const [red, green, blue] = color.map((value) => {
      const share = value / 255
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4
    })
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
  }
  function ratio(one, other) {
    const [dark, light] = [luminance(one), luminance(other)].sort((a, b) => a - b)
    return (light + 0.05) / (dark + 0.05)
  }

  // The color behind the text of an element, or null on an image; in a chart with the shapes drawn before it that
  // contain its center.
  function background(element) {
    const below = behind(element)
    if (!below || !element.ownerSVGElement) return below
    return shapesBelow(element).reduce((color, layer) => over(layer, color), below)
  }
  // Each element asks for those around it again: the results are kept.
  const behind = kept((element) => {
    if (!element) {
      const scheme = getComputedStyle(document.documentElement).colorScheme
      const dark = scheme.includes('dark') && matchMedia('(prefers-color-scheme: dark)').matches
      return dark ? [18, 18, 18] : [255, 255, 255]
    }
    const style = getComputedStyle(element)
    const below = behind(element.parentElement)
    if (!below || style.backgroundImage !== 'none') return null
    return over(faded(parse(style.backgroundColor), opacity(element)), below)
  })
  const opacity = kept((element) =>
    element ? Number(getComputedStyle(element).opacity) * opacity(element.parentElement) : 1)
  const shapes = kept((svg) => [...svg.querySelectorAll('rect')].map((shape) => {
    const style = getComputedStyle(shape)
    const fill = style.fill === 'none' ? [0, 0, 0, 0] : parse(style.fill)
    const layer = faded(fill, Number(style.fillOpacity) * opacity(shape))
    return { shape, area: shape.getBoundingClientRect(), layer }
  }))
  function shapesBelow(text) {
    const box = text.getBoundingClientRect()
    const [x, y] = [box.left + box.width / 2, box.top + box.height / 2]
    return shapes(text.ownerSVGElement)
      .filter(({ shape, area }) => area.left <= x && x <= area.right && area.top <= y && y <= area.bottom &&
        text.compareDocumentPosition(shape) & Node.DOCUMENT_POSITION_PRECEDING)
      .map(({ layer }) => layer)
  }
  const faded = (color, by) => [color[0], color[1], color[2], color[3] * by]

  function checkText() {
    const seen = new Set()
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
    while (texts.nextNode()) {
      const element = texts.currentNode.parentElement
      if (!texts.currentNode.data.trim() || seen.has(element) || !visible(element)) continue
      seen.add(element)
      checkContrast(element, getComputedStyle(element)[element.ownerSVGElement ? 'fill' : 'color'])
    }
    for (const field of document.querySelectorAll('input, select, textarea')) {
      if (!visible(field)) continue
      if (field.value) checkContrast(field, getComputedStyle(field).color)
      if (field.placeholder) checkContrast(field, getComputedStyle(field, '::placeholder').color)
    }
  }
  function checkContrast(element, color) {
    if (element.closest(':disabled')) return
    const below = background(element)
    if (!below) return report(element, 'the contrast of text on an image cannot be computed')
    const style = getComputedStyle(element)
    const size = parseFloat(style.fontSize)
    const large = size >= 24 || size >= 18.66 && Number(style.fontWeight) >= 700
    const got = ratio(over(faded(parse(color), opacity(element)), below), below)
    const least = large ? 3 : 4.5
    if (got < least - 0.005) report(element, `contrast ${got.toFixed(2)} is below ${least}`)
  }

  // The border or the fill of a control must differ from what surrounds it.
  function checkControls() {
    const kinds = 'input:not([type=hidden], [type=checkbox], [type=radio], [type=range]), select, textarea'
    for (const field of document.querySelectorAll(kinds)) {
      if (!visible(field) || field.disabled) continue
      const [outside, inside] = [background(field.parentElement), background(field)]
      if (!outside || !inside) continue
      const style = getComputedStyle(field)
      const border = parseFloat(style.borderBottomWidth) ? over(parse(style.borderBottomColor), outside) : outside
      const got = Math.max(ratio(border, outside), ratio(inside, outside))
      if (got < 2.995) report(field, `the edge of the control has contrast ${got.toFixed(2)}, below 3`)
    }
  }

  function name(element) {
    const ids = (element.getAttribute('aria-labelledby') || '').split(/\s+/).filter(Boolean)
    return [
      ids.map((id) => document.getElementById(id)?.textContent || '').join(' '),
      element.getAttribute('aria-label'),
      [...(element.labels || [])].map((label) => label.textContent).join(' '),
      element.matches('input[type=submit], input[type=button]') ? element.value : '',
      element.matches('select, input, textarea') ? '' : element.textContent,
      element.querySelector('title, img[alt]')?.textContent || element.querySelector('img[alt]')?.alt,
      element.getAttribute('alt'),
      element.getAttribute('title'),
    ].map((text) => (text || '').trim()).find(Boolean) || ''
  }

  function checkNames() {
    for (const field of document.querySelectorAll('input:not([type=hidden]), select, textarea')) {
      if (!name(field)) report(field, 'the control has no label')
    }
    for (const element of document.querySelectorAll('a[href], button, summary, [role=img], [role=button], dialog')) {
      if (element.closest('[aria-hidden=true]')) continue
      if (!name(element)) report(element, 'it has no name')
    }
    for (const image of document.querySelectorAll('img:not([alt])')) report(image, 'the image has no alt')
    for (const image of document.querySelectorAll('svg')) {
      const hidden = image.closest('[aria-hidden=true]')
      if (!hidden && !image.closest('[role=img]')) report(image, 'the image needs role=img and a name, or aria-hidden')
    }
    for (const table of document.querySelectorAll('table')) {
      if (!table.querySelector('th')) report(table, 'the table has no header cell')
    }
  }

  function checkReferences() {
    const ids = new Set()
    for (const element of document.querySelectorAll('[id]')) {
      if (ids.has(element.id)) report(element, 'the id occurs twice')
      ids.add(element.id)
    }
    for (const attribute of ['for', 'aria-labelledby', 'aria-describedby', 'aria-controls']) {
      for (const element of document.querySelectorAll(`[${attribute}]`)) {
        for (const id of element.getAttribute(attribute).split(/\s+/)) {
          if (!ids.has(id)) report(element, `${attribute} names ${id}, which does not exist`)
        }
      }
    }
  }

  function checkStructure() {
    const page = document.documentElement
    if (!page.lang) report(page, 'it has no language')
    if (!document.title.trim()) report(page, 'it has no title')
    if (!document.querySelector('meta[name=viewport]')) report(page, 'it has no viewport for phones')
    const main = document.querySelectorAll('main')
    if (main.length !== 1) report(page, `it has ${main.length} main elements, not 1`)
    let last = 0 // Menus before and beside the content have headings of their own.
    for (const heading of document.querySelectorAll(['h1', 'h2', 'h3', 'h4', 'h5', 'h6'].map((h) => 'main ' + h))) {
      const level = Number(heading.localName[1])
      if (level > last + 1) report(heading, `a heading of level ${level} follows level ${last}`)
      if (!heading.textContent.trim()) report(heading, 'the heading is empty')
      last = level
    }
    const top = document.querySelectorAll('h1').length
    if (top !== 1) report(page, `it has ${top} headings of level 1, not 1`)
  }

  function checkOverflow() {
    const width = document.documentElement.clientWidth
    const excess = document.documentElement.scrollWidth - width
    if (excess <= 0) return
    const wide = [...document.body.querySelectorAll('*')].filter((element) => {
      for (let at = element.parentElement; at; at = at.parentElement) {
        if (getComputedStyle(at).overflowX !== 'visible') return false
      }
      return visible(element) && element.getBoundingClientRect().right > width + 0.5
    })
    report(wide.at(-1) || document.body, `the page scrolls sideways by ${excess} px`)
  }

  // 2.5.8: 24 by 24 px; or no other target within a circle of 24 px; or a link in a line of text.
  function checkTargets() {
    const kinds = 'a[href], button, input:not([type=hidden]), select, textarea, summary, [role=button], [tabindex="0"]'
    const targets = [...document.querySelectorAll(kinds)].filter((element) => visible(element))
    const area = (element) => {
      const box = element.getBoundingClientRect()
      return [...(element.labels || [])].filter(visible).map((label) => label.getBoundingClientRect())
        .find((label) => label.left <= box.left && label.right >= box.right && label.height >= box.height) || box
    }
    const boxes = targets.map(area)
    targets.forEach((element, i) => {
      const box = boxes[i]
      if (box.width >= 23.5 && box.height >= 23.5 || inText(element)) return
      const [x, y] = [box.left + box.width / 2, box.top + box.height / 2]
      const close = boxes.findIndex((other, k) => {
        if (k === i || targets[k].contains(element) || element.contains(targets[k])) return false
        const [dx, dy] = [x - clamp(x, other.left, other.right), y - clamp(y, other.top, other.bottom)]
        return Math.hypot(dx, dy) < 12
      })
      if (close < 0) return
      const size = `${box.width.toFixed(0)} by ${box.height.toFixed(0)} px`
      report(element, `the target is ${size}, and too close to ${describe(targets[close])}`)
    })
  }
  const clamp = (value, least, greatest) => Math.min(Math.max(value, least), greatest)
  function inText(element) {
    if (!getComputedStyle(element).display.startsWith('inline')) return false
    const line = element.closest('p, li, td, dd, dt, th, label, figcaption, h1, h2, h3, h4, summary')
    return Boolean(line) && line.textContent.trim() !== element.textContent.trim()
  }

  checkStructure()
  checkReferences()
  checkNames()
  checkText()
  checkControls()
  checkOverflow()
  checkTargets()
  return [...new Set(problems)]
})()
