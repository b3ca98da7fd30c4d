/* One button per checklist: copies it as Markdown. Without JavaScript the same text stands below the list. */
(function () {
  "use strict";
  var words = document.querySelector("meta[name='vg:copy']");
  if (!words || !navigator.clipboard) return;
  document.querySelectorAll(".vg-checklist").forEach(function (list) {
    var text = list.querySelector(".vg-checklist__markdown code");
    var before = list.querySelector(".vg-checklist__markdown");
    if (!text) return;
    var button = document.createElement("button");
    button.type = "button";
    button.className = "vg-copy";
    button.textContent = words.content;
    button.addEventListener("click", function () {
      navigator.clipboard.writeText(text.textContent).then(function () {
        button.textContent = words.dataset.done;
        setTimeout(function () { button.textContent = words.content; }, 2500);
      });
    });
    list.insertBefore(button, before);
    before.hidden = true;
  });
})();

/* Tables that the theme lets scroll can be reached by keyboard as long as they do. Those of the macros say so themselves. */
(function () {
  "use strict";
  function reach() {
    document.querySelectorAll(".md-typeset__scrollwrap").forEach(function (box) {
      if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
      else box.removeAttribute("tabindex");
    });
  }
  addEventListener("load", reach);
  addEventListener("resize", reach);
})();
