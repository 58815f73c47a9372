window.addEventListener("DOMContentLoaded", () => {
  const place = document.getElementById("viewer");
  SwaggerUIBundle({
    url: place.dataset.document,
    domNode: place,
    deepLinking: true,
    docExpansion: "list",
    defaultModelsExpandDepth: 0,
    defaultModelRendering: "example",
    supportedSubmitMethods: "try" in place.dataset ? ["get", "patch"] : [],
    validatorUrl: null,
  });
});
