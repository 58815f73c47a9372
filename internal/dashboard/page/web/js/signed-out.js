// Tells the other tabs of the browser that the person signed out. They load their pages again, which then need a sign-in,
// so that they show nothing of the person any more: menu.js.

new BroadcastChannel("signed-out").postMessage("");
