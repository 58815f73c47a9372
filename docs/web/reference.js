// Shows an OpenAPI document with Swagger UI. Its requests have the key that the reader put into the samples; see fill.js.
window.addEventListener("DOMContentLoaded", () => {
  const place = document.getElementById("viewer");
  const viewer = SwaggerUIBundle({
    url: place.dataset.document,
    domNode: place,
    deepLinking: true,
    docExpansion: "list",
    defaultModelsExpandDepth: 0,
    defaultModelRendering: "example",
    supportedSubmitMethods: "try" in place.dataset ? ["get", "patch"] : [],
    validatorUrl: null,
    onComplete() {
      const key = "try" in place.dataset && storedKey();
      if (key) viewer.preauthorizeApiKey("bearer", key);
    },
  });
});

// storedKey returns the API key that the browser keeps, if any.
function storedKey() {
  for (const name of ["sessionStorage", "localStorage"]) {
    try {
      const text = window[name].getItem("roomsensor-docs-values");
      if (text) return JSON.parse(text).key;
    } catch {
      // The reader blocks the storage.
    }
  }
}
