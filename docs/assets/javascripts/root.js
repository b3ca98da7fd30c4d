/* Takes a reader from the root page to the browser's language, once per visit; whoever comes back finds the list. */
(function () {
  "use strict";
  var languages = ["de", "en", "tr"];
  try {
    if (sessionStorage.getItem("vram-guide.language")) return;
    sessionStorage.setItem("vram-guide.language", "asked");
  } catch (refused) {
    return; // without storage "once" cannot be known
  }
  var wanted = (navigator.languages || [navigator.language]).map(function (tag) {
    return String(tag).toLowerCase().split("-")[0];
  });
  var first = wanted.filter(function (tag) { return languages.indexOf(tag) >= 0; })[0];
  if (first) location.replace(first + "/");
})();
