/* The calculator's form: fields → the translated estimator (estimator.js) → texts in their places. It calculates nothing
   itself. The address holds what is set; a pinned recipe stands there under names that begin with "b.". */
(function () {
  "use strict";
  var guide = globalThis.vramGuide;
  if (!guide || !guide.words) return;
  var words = guide.words;
  var PINNED = "b.";
  /* Where the articles say how a measure is taken. */
  var HOW = {
    base_in_16_bits: "choose-a-gpu-by-memory/#loss", loss_in_chunks: "choose-a-gpu-by-memory/#loss", sdpa_attention: "activations/#attention",
    flash_attention: "activations/#attention", gradient_checkpointing: "gradient-checkpointing/", batch_of_one: "batch-size/", optimizer_8bit: "full-fine-tuning/#variants",
    paged_optimizer: "full-fine-tuning/#variants", bf16_weights: "full-fine-tuning/#variants", without_preparation: "qlora-4bit/", checkpoint_offload: "gradient-checkpointing/#offload",
    lora: "lora-vs-qlora/", qlora: "lora-vs-qlora/", sharding: "multi-gpu/", more_cards: "multi-gpu/", shorter_sequence: "activations/",
  };

  function make(tag, attributes) {
    var node = document.createElement(tag);
    for (var name in attributes) {
      if (name === "text") node.textContent = attributes[name];
      else if (name === "do") node.addEventListener("click", attributes[name]);
      else if (attributes[name] !== null) node.setAttribute(name, attributes[name]);
    }
    Array.prototype.slice.call(arguments, 2).forEach(function (child) { node.append(child); });
    return node;
  }
  function say(key, slots) { return guide.text(words, "calculator." + key, slots || null); }
  function badge(row) { return make("span", { "class": "vg-verdict vg-verdict--" + row.verdict, text: row.badge }); }
  /* The roles are those of the elements: a style that stacks the cells on a phone would take them away. */
  function table(heads, rows) {
    var head = make("tr", { role: "row" });
    heads.forEach(function (text) { head.append(make("th", { scope: "col", role: "columnheader", text: text })); });
    var body = make("tbody", { role: "rowgroup" });
    rows.forEach(function (cells) {
      var line = make("tr", { role: "row" });
      cells.forEach(function (cell, place) {
        var at = make(place ? "td" : "th", place ? { role: "cell", "data-label": heads[place] } : { scope: "row", role: "rowheader" });
        at.append(cell);
        line.append(at);
      });
      body.append(line);
    });
    var inside = make("table", { "class": "vg-data", role: "table" }, make("thead", { role: "rowgroup" }, head), body);
    var label = guide.text(words, "table.label", { columns: heads.filter(Boolean).join(", ") });
    return make("div", { "class": "vg-scroll", tabindex: "0", role: "region", "aria-label": label }, inside);
  }
  function swatch(part) { return make("i", { "class": "vg-swatch vg-part--" + part, "aria-hidden": "true" }); }

  /* A form's fields as names and texts. The field of the model shows names and means keys. */
  function Form(root) {
    var form = root.querySelector("form");
    var models = form.elements.model, hint = root.querySelector("[data-part='model-hint']");
    var byKey = {}, listed = [];
    form.querySelectorAll("datalist option").forEach(function (option) {
      byKey[option.dataset.key] = option.value;
      listed.push({ key: option.dataset.key, name: option.value, plain: plain(option.value) + " " + plain(option.dataset.key) });
    });
    /* Words of a name: without the owner on the Hub and what a version for chats adds, "gemma3" as "gemma 3". */
    function plain(text) {
      return text.toLowerCase().replace(new RegExp("^.*/"), "").replace(new RegExp("([a-z])(?=\\d)", "g"), "$1 ").split(new RegExp("[\\s_()-]+"))
        .filter(function (word) { return word && ["meta", "instruct", "it", "chat", "base", "hf"].indexOf(word) < 0; }).join(" ");
    }
    /* The model whose name was typed; else every model that has all the words, or words that begin with them. */
    function matching(text) {
      var parts = plain(text).split(" "), all = " " + parts.join(" ") + " ";
      function having(start) {
        return listed.filter(function (model) {
          return parts.every(function (part) { return (" " + model.plain + " ").indexOf(" " + part + (start ? "" : " ")) >= 0; });
        });
      }
      var exact = listed.filter(function (model) { return model.key === text || " " + plain(model.name) + " " === all; });
      var whole = exact.length || !plain(text) ? exact : having(false);
      return whole.length || !plain(text) ? whole : having(true);
    }
    /* One model, or what was typed where none or several could be meant. */
    function chosen(text) {
      var found = matching(text);
      hint.textContent = found.length > 1 ? found.slice(0, 8).map(function (model) { return model.name; }).join(", ") + (found.length > 8 ? " …" : "") : hint.dataset.hint;
      return found.length === 1 ? found[0].key : text;
    }
    models.addEventListener("focus", function () { models.select(); });
    models.addEventListener("change", function () {
      var found = matching(models.value);
      if (found.length !== 1 || models.value === found[0].name) return;
      models.value = found[0].name;
      models.dispatchEvent(new Event("input", { bubbles: true }));
    });
    return {
      node: form,
      pairs: function () {
        return Array.prototype.filter.call(form.elements, function (field) {
          return field.name && (field.type !== "radio" || field.checked) && field.value.trim();
        }).map(function (field) {
          var text = field.value.trim();
          return [field.name, field === models ? chosen(text) : text];
        });
      },
      fill: function (pairs) {
        var texts = {};
        pairs.forEach(function (pair) { texts[pair[0]] = pair[1]; });
        Array.prototype.forEach.call(form.elements, function (field) {
          if (!field.name) return;
          var text = texts[field.name] || "";
          if (field.type === "radio") field.checked = field.value === (text || "gb");
          else if (field === models) field.value = byKey[text] || text;
          else field.value = text;
          if (field.tagName === "SELECT" && field.selectedIndex < 0) field.selectedIndex = 0;
        });
      },
      field: function (name) { return form.querySelector('[data-name="' + name + '"]'); },
      /* Whether the field of the model could mean more than one; its hint names them. */
      several: function () { return matching(models.value).length > 1; },
    };
  }

  function parsed(text) {
    try { return JSON.parse(text); } catch (refused) { return null; }
  }
  function configs(pairs) {
    var found = {};
    pairs.forEach(function (pair) { if (pair[0] === "config") found[pair[1]] = parsed(pair[1]); });
    return found;
  }

  /* What a list of pairs means: keys that can be calculated, and what was left out, each with its sentence. */
  function understand(pairs) {
    var unit = "gb", show = "";
    var known = pairs.filter(function (pair) {
      if (pair[0] === "unit" && (pair[1] === "gb" || pair[1] === "gib")) { unit = pair[1]; return false; }
      if (pair[0] === "show" && pair[1] === "capacity") { show = pair[1]; return false; }
      return true;
    });
    var read = guide.read_pairs(known, configs(known));
    var settled = guide.settled_keys(read.keys);
    var problems = read.problems.map(function (problem) {
      return { name: problem.name, text: guide.problem_text(words, problem), always: true };
    });
    settled.dropped.forEach(function (key) {
      var name = guide.short_name(key);
      // A list of names contradicts nothing: one of them is not a layer of the model.
      var kind = key === "target_modules" ? "value" : "contradiction";
      problems.push({ name: name, text: guide.problem_text(words, { key: key, name: name, kind: kind, value: String(read.keys[key]), least: 0, most: 0 }) });
    });
    return { keys: settled.keys, problems: problems, sentence: settled.sentence, unit: unit, show: show };
  }
  function pairsOf(keys) {
    var pairs = guide.pairs_of(keys);
    if (keys.config) pairs.unshift(["config", JSON.stringify(keys.config)]);
    return pairs;
  }

  /* The address: below http its query, from a file its fragment, because a file's query cannot be changed. */
  function addressPairs() {
    var text = location.hash.slice(0, 2) === "#?" ? location.hash.slice(2) : location.search;
    return Array.from(new URLSearchParams(text).entries());
  }
  function addressOf(pairs) {
    return "?" + new URLSearchParams(pairs).toString().replaceAll("%2C", ",");
  }
  function write(query, push) {
    var fresh = location.protocol === "file:" ? "#" + query : query + (location.hash.slice(0, 2) === "#?" ? "" : location.hash);
    var now = location.protocol === "file:" ? location.hash : location.search + location.hash;
    if (fresh !== now) history[push ? "pushState" : "replaceState"](null, "", fresh);
    keepLanguage(query);
  }
  function keepLanguage(query) {
    document.querySelectorAll("a[hreflang]").forEach(function (link) {
      if (location.protocol === "file:") link.hash = query;
      else link.search = query;
    });
  }

  function whole(root) {
    var form = Form(root), places = {}, turn = 0, typing = null, pinned = null, open = false, last = null;
    root.querySelectorAll("[data-part]").forEach(function (node) { places[node.dataset.part] = node; });
    root.hidden = false;

    function fromAddress() {
      var pairs = addressPairs(), mine = [], other = [];
      pairs.forEach(function (pair) {
        if (pair[0].slice(0, PINNED.length) === PINNED) other.push([pair[0].slice(PINNED.length), pair[1]]);
        else mine.push(pair);
      });
      var start = Array.from(new URLSearchParams(root.dataset.start).entries()), named = understand(mine).keys;
      if (!named.model && !named.config) {
        var given = mine.map(function (pair) { return pair[0]; });
        mine = start.filter(function (pair) { return given.indexOf(pair[0]) < 0; }).concat(mine);
      }
      pinned = other.length ? understand(other).keys : null;
      var read = understand(mine);
      // What is wrong stays in its field, so that it can be mended.
      form.fill(mine.concat(pairsOf(read.keys), [["unit", read.unit]]));
      open = read.show === "capacity";
      update(read, true);
    }

    /* A field that is being typed into makes one step of the way back, everything else a step of its own. */
    function fromForm(field) {
      update(understand(form.pairs()), false);
      write(addressOf(state()), !field || field !== typing);
      typing = field || null;
    }
    function state() {
      var pairs = pairsOf(last.keys);
      if (last.unit !== "gb") pairs.push(["unit", last.unit]);
      if (pinned) pairsOf(pinned).forEach(function (pair) { pairs.push([PINNED + pair[0], pair[1]]); });
      if (open) pairs.push(["show", "capacity"]);
      return pairs;
    }
    function go(keys) {
      form.fill(pairsOf(keys).concat([["unit", last.unit]]));
      fromForm();
    }

    /* The verdict and its parts at once; whatever takes longer follows piece by piece. */
    function update(read, loud) {
      last = read;
      turn += 1;
      var result = null, sentence = read.sentence;
      if (!sentence) result = guide.result_texts(words, read.keys, read.unit);
      own(read.keys);
      var wrong = problems(read, result, loud);
      root.classList.toggle("vg-calculator--stuck", !result);
      if (!result) {
        unanswered(places, read);
        return;
      }
      answer(places, result, wrong);
      parts(result);
      showExport();
      later(read, result);
    }

    function own(keys) {
      places.own.hidden = !keys.config;
      if (keys.config) places["config-name"].textContent = say("config.own", { type: String((keys.config.text_config || keys.config).model_type || keys.config.model_type) });
    }

    /* Says what is wrong, and whether any of it is among what the reader sees. */
    function problems(read, result, loud) {
      var wrong = false;
      root.querySelectorAll(".vg-field__error").forEach(function (place) { place.hidden = true; });
      root.querySelectorAll("[aria-invalid]").forEach(function (field) { field.removeAttribute("aria-invalid"); });
      places.problems.replaceChildren();
      read.problems.forEach(function (problem) {
        var at = form.field(problem.name);
        // What a setting elsewhere has put out of use is hidden, and not worth a word while somebody types.
        var used = !result || result.applicable.indexOf(problem.name) >= 0 || !at || loud;
        if (!used && !problem.always) return;
        if (problem.name === "model" && form.several()) problem.text = say("problem.several");
        wrong = true;
        if (at) {
          var place = at.querySelector(".vg-field__error"), control = at.querySelector("input, select");
          place.textContent = problem.text;
          place.hidden = false;
          control.setAttribute("aria-invalid", "true");
          var fold = at.closest("details");
          if (fold && loud) fold.open = true;
        }
        if (loud || !at) places.problems.append(make("li", { text: problem.text }));
      });
      if (read.sentence && !missing(read)) places.problems.append(make("li", { lang: "en", text: read.sentence }));
      places.problems.hidden = !places.problems.children.length;
      return wrong;
    }

    /* What the framework and the estimator set where nobody did stands in the fields; those out of use are hidden. */
    function fields(result) {
      form.node.querySelectorAll("[data-name]").forEach(function (field) {
        var control = field.querySelector("input, select"), name = field.dataset.name;
        var key = guide.long_name(name), value = result.settings[key];
        if (value !== undefined) {
          field.hidden = result.applicable.indexOf(name) < 0;
          // What would hold without the reader's own choice is not known while there is one.
          if (control.tagName === "SELECT" && control.options[0].value === "") control.options[0].textContent = control.value ? say("default.plain") : say("default", { value: value });
          else if (control.tagName === "INPUT") control.placeholder = control.value ? "" : value;
        }
      });
      form.node.querySelectorAll("details fieldset").forEach(function (group) {
        group.hidden = !group.querySelector(".vg-field:not([hidden])");
      });
      places.tokens.textContent = result.tokens;
    }

    function parts(result) {
      places.card.hidden = !result.card.label;
      if (result.card.label) {
        var bar = make("span", { "class": "vg-against", "aria-hidden": "true" },
          make("i", { "class": "vg-against__peak vg-against__peak--" + result.verdict, style: "width:" + result.card.peak + "%" }),
          make("b", { style: "left:" + result.card.memory + "%" }));
        places.card.replaceChildren(bar, make("span", { "class": "vg-against__label", text: result.card.label }));
      }
      var stack = make("div", { "class": "vg-stack", "aria-hidden": "true" }), legend = make("ul", { "class": "vg-legend" });
      result.parts.forEach(function (part) {
        stack.append(make("i", { "class": "vg-part--" + part.part, style: "width:" + part.share + "%" }));
        legend.append(make("li", { "data-part-of-peak": part.part }, swatch(part.part),
          make("span", { "class": "vg-legend__name", text: part.label }), make("span", { "class": "vg-legend__amount", text: part.amount })));
      });
      places.parts.replaceChildren(make("p", { "class": "vg-caption", text: result.moment }), stack, legend);
    }

    function facts(read, result) {
      fields(result);
      places.facts.replaceChildren();
      result.facts.forEach(function (fact) {
        places.facts.append(make("div", { "data-fact": fact[0] }, make("dt", { text: fact[1] }), make("dd", { text: fact[2] })));
      });
      places.evidence.textContent = result.evidence + " ";
      places.evidence.append(make("a", { href: root.dataset.accuracy, text: say("evidence") }));
      var list = make("ol", { "class": "vg-moments" });
      result.moments.forEach(function (moment) {
        list.append(make("li", { "data-moment": moment.moment, "class": moment.peak ? "vg-moments__peak" : null },
          make("span", { "class": "vg-moments__label", text: moment.label }),
          make("span", { "class": "vg-moments__bar", "aria-hidden": "true" }, make("i", { style: "width:" + moment.share + "%" })),
          make("span", { "class": "vg-moments__amount", text: moment.amount + (moment.peak ? " · " + say("moments.peak") : "") })));
      });
      places.moments.replaceChildren(list);
      places.warnings.replaceChildren();
      result.warnings.forEach(function (warning) { places.warnings.append(make("li", { text: warning })); });
      places.warnings.hidden = !result.warnings.length;
      places.beside.replaceChildren();
      ["events", "host", "disk"].forEach(function (name) {
        if (result[name].length) places.beside.append(table([say("beside." + name), ""], result[name]));
      });
    }

    /* Each piece a task of its own, so that typing comes first; a newer turn ends the older one's pieces. */
    function later(read, result) {
      var mine = turn;
      var pieces = [facts, advice, limits, cards, compare, capacity];
      root.dataset.busy = "";
      function next() {
        if (mine !== turn) return;
        var piece = pieces.shift();
        if (!piece) { delete root.dataset.busy; return; }
        try { piece(read, result, mine); } finally { setTimeout(next, piece === facts ? 120 : 0); }
      }
      setTimeout(next, 0);
    }

    function advice(read) {
      var found = guide.advice_texts(words, read.keys, read.unit);
      var place = places.advice;
      place.replaceChildren(make("p", { text: found.sentence }));
      if (!found.measures.length) return;
      var rows = found.measures.map(function (measure) {
        var name = measure.label, how = HOW[measure.name];
        var button = make("button", { type: "button", "class": "vg-link", text: say("apply"), "aria-label": say("apply.label", { label: name }),
          do: function () { go(measure.keys); form.node.scrollIntoView({ block: "nearest" }); } });
        return [how ? make("a", { href: root.dataset.articles + how, text: name }) : name, measure.saving, measure.peak, measure.badge ? badge(measure) : "–", measure.price, button];
      });
      place.append(table([words["column.measure"], words["column.saving"], words["column.peak"], words["column.verdict"], words["column.price"], ""], rows),
        make("p", { "class": "vg-caption", text: say("advice.all") }));
    }

    function limits(read) {
      var rows = guide.limits_texts(words, read.keys, read.unit);
      if (!rows.length) places.limits.replaceChildren(make("p", { text: say("limits.need") }));
      else places.limits.replaceChildren(table(["", words["verdict.comfortable"], words["verdict.tight"], ""], rows.map(function (row) {
        var best = row.keys ? make("button", { type: "button", "class": "vg-link", text: say("apply.value", { value: row.best }), "aria-label": row.label + ": " + say("apply.value", { value: row.best }),
          do: function () { go(row.keys); } }) : "";
        return [row.label, row.comfortable, row.tight, best];
      })));
    }

    function cards(read) {
      var found = guide.cards_texts(words, read.keys, read.unit), place = places.cards;
      var all = make("details", { "class": "vg-calc__more", open: place.querySelector("details[open]") ? "" : null }, make("summary", { text: say("cards.all") }),
        table([words["column.gpu"], words["column.memory"], words["column.verdict"], words["column.headroom"]], found.cards.map(function (card) {
          return [card.name, card.memory, badge(card), card.headroom];
        })));
      place.replaceChildren(make("p", { text: found.sentence }), all);
    }

    function compare(read, result) {
      var place = places.compare;
      var keep = make("button", { type: "button", "class": "vg-button", text: say("compare.keep"), do: function () {
        pinned = last.keys;
        write(addressOf(state()), true);
        compare(last, guide.result_texts(words, last.keys, last.unit));
      } });
      place.replaceChildren();
      if (!pinned) {
        place.append(make("p", { text: say("compare.hint") }), keep);
        return;
      }
      var other = guide.result_texts(words, pinned, read.unit);
      var rows = [], before = guide.settings_texts(words, pinned), after = guide.settings_texts(words, read.keys);
      before.forEach(function (setting, at) {
        if (setting[2] !== after[at][2]) rows.push([setting[1], setting[2], after[at][2]]);
      });
      if (!rows.length) place.append(make("p", { text: say("compare.same") }));
      rows.push([words["column.verdict"], other.badge ? badge(other) : "–", result.badge ? badge(result) : "–"]);
      var kept = {};
      other.facts.forEach(function (fact) { kept[fact[0]] = fact; });
      result.facts.forEach(function (fact) { rows.push([fact[1], kept[fact[0]] ? kept[fact[0]][2] : "–", fact[2]]); });
      place.append(table([say("compare.setting"), say("compare.kept"), say("compare.now")], rows));
      place.append(make("p", { "class": "vg-calc__row" },
        make("button", { type: "button", "class": "vg-button", text: say("compare.swap"), do: function () { var kept = pinned; pinned = last.keys; go(kept); } }),
        make("button", { type: "button", "class": "vg-button", text: say("compare.remove"), do: function () { pinned = null; write(addressOf(state()), true); compare(last, result); } })));
    }

    function capacity(read, result, mine) {
      var place = places.capacity;
      place.replaceChildren(make("p", { text: say("capacity.hint") }));
      if (!read.keys.gpu) { place.append(make("p", { text: say("limits.need") })); return; }
      var name = guide.data.gpus[read.keys.gpu].name;
      var button = make("button", { type: "button", "class": "vg-button", text: say("capacity.run", { gpu: name }), do: start });
      place.append(button);
      if (open) start();
      function start() {
        if (!open) { open = true; write(addressOf(state()), true); }
        button.hidden = true;
        var models = Object.keys(guide.data.models).filter(function (key) { return !guide.data.models[key].history; });
        var methods = ["qlora", "lora", "full"];
        var shown = table([words["column.model"]].concat(methods.map(function (method) { return words["method." + method]; })), []);
        var body = shown.querySelector("tbody"), progress = make("p", { "class": "vg-caption", role: "status" });
        place.append(progress, shown);
        var at = 0;
        (function next() {
          if (mine !== turn || !place.contains(shown)) return;
          var model = models[at], rows = guide.capacity_texts(words, read.keys, [model], read.unit);
          at += 1;
          progress.textContent = at < models.length ? say("capacity.busy", { done: String(at), all: String(models.length) }) : "";
          var line = make("tr", { role: "row", "data-model": model }, make("th", { scope: "row", role: "rowheader", text: guide.data.models[model].name }));
          methods.forEach(function (method) {
            var row = rows.filter(function (each) { return each.method === method; })[0];
            var cell = make("td", { role: "cell" }, row ? badge(row) : "–");
            if (row && row.verdict !== "does_not_fit") cell.append(make("br", {}), make("small", { text: "(" + row.length + ")" }));
            line.append(cell);
          });
          body.append(line);
          if (at < models.length) setTimeout(next, 0);
        })();
      }
    }

    /* A config.json, pasted, chosen or dropped. */
    function takeConfig(text) {
      var error = places["config-error"], config = parsed(text), shape = null;
      error.hidden = true;
      if (!config || typeof config !== "object") error.textContent = say("config.no_json");
      else {
        try { shape = guide.shape_of(config); } catch (refused) {
          error.replaceChildren(say("problem.config") + " ", make("span", { lang: "en", text: refused.message }));
        }
      }
      if (!shape) { error.hidden = false; places.config.open = true; return; }
      form.node.elements.config.value = JSON.stringify(shape);
      form.node.elements.model.value = "";
      fromForm();
    }
    places["config-file"].addEventListener("change", function () {
      if (this.files[0]) this.files[0].text().then(function (text) { places["config-text"].value = text; takeConfig(text); });
    });
    root.addEventListener("dragover", function (event) { event.preventDefault(); });
    root.addEventListener("drop", function (event) {
      if (!event.dataTransfer.files[0]) return;
      event.preventDefault();
      event.dataTransfer.files[0].text().then(function (text) { places["config-text"].value = text; takeConfig(text); });
    });

    /* The configuration of a training framework: read by a script of its own, which is fetched when somebody needs it. */
    function withConfigs(use) {
      if (globalThis.vramGuideConfigs) return use(globalThis.vramGuideConfigs);
      var script = make("script", { src: root.dataset.configs });
      script.addEventListener("load", function () { use(globalThis.vramGuideConfigs); });
      document.head.append(script);
    }
    function takeTraining(text) {
      withConfigs(function (read) { readTraining(read, text); });
    }
    function readTraining(read, text) {
      var found = read.read_config(text), place = places["import-report"], object = parsed(text);
      if (object && (object.model_type || object.architectures)) {
        place.replaceChildren();
        places.config.open = true;
        places["config-text"].value = text;
        takeConfig(text);
        return;
      }
      if (!found.understood.length) {
        place.replaceChildren(make("p", { text: say("import.nothing") }));
        return;
      }
      function sentence(said) {
        var values = {};
        for (var name in said.values) values[name] = read.words[said.values[name]] || words[said.values[name]] || String(said.values[name]);
        var text = guide.text(read.words, said.says, values), key = [said.key, said.value].filter(Boolean).join(" ");
        if (key) text = say("import.said", { key: key, said: text });
        return said.line ? say("import.line", { line: String(said.line), said: text }) : text;
      }
      place.replaceChildren(make("p", { text: guide.data.presets[found.framework] ? say("import.framework", { framework: guide.data.presets[found.framework].name }) : "" }));
      ["errors", "understood", "assumed", "ignored"].forEach(function (kind) {
        if (!found[kind].length) return;
        var list = make("ul", {});
        found[kind].forEach(function (said) { list.append(make("li", { text: sentence(said) })); });
        place.append(make("details", { "class": "vg-calc__more", "data-kind": kind, open: kind === "errors" ? "" : null },
          make("summary", { text: say("import." + kind) }), list));
      });
      var keys = Object.assign({}, found.recipe);
      if (!keys.gpu && last.keys.gpu) keys.gpu = last.keys.gpu;
      if (!keys.model && !keys.config && last.keys.model) keys.model = last.keys.model;
      if (keys.method) go(keys);
    }

    /* The recipe for other programs, as long as somebody looks at it. Two of them need a model that the Hub has. */
    function showExport() {
      if (!places["export"].open || last.sentence) return;
      withConfigs(function (write) {
        var kind = places["export-kind"].value, none = Boolean(last.keys.config) && (kind === "trl" || kind === "axolotl");
        places["export-error"].hidden = !none;
        places["export-text"].value = none ? "" : write.write_config(kind, last.keys, guide.estimate_keys(last.keys).conditions);
      });
    }
    places["export"].addEventListener("toggle", showExport);
    places["export-kind"].addEventListener("change", showExport);

    var DO = {
      copy: function (button) {
        function done() {
          button.textContent = say("shared");
          setTimeout(function () { button.textContent = say("export.copy"); }, 2500);
        }
        function show() { places["export-text"].select(); }
        if (navigator.clipboard) navigator.clipboard.writeText(places["export-text"].value).then(done, show);
        else show();
      },
      "import": function () { takeTraining(places["import-text"].value); },
      config: function () { takeConfig(places["config-text"].value); },
      "remove-config": function () {
        form.node.elements.config.value = "";
        form.fill(Array.from(new URLSearchParams(root.dataset.start).entries()));
        fromForm();
      },
      reset: function () {
        pinned = null;
        open = false;
        form.fill(Array.from(new URLSearchParams(root.dataset.start).entries()));
        fromForm();
      },
      share: function (button) {
        write(addressOf(state()), false);
        function done() {
          button.textContent = say("shared");
          setTimeout(function () { button.textContent = say("share"); }, 2500);
        }
        function show() {
          places.address.value = location.href;
          places.address.hidden = false;
          places.address.select();
        }
        if (navigator.clipboard) navigator.clipboard.writeText(location.href).then(done, show);
        else show();
      },
    };
    root.addEventListener("click", function (event) {
      var button = event.target.closest("[data-do]");
      if (button) DO[button.dataset.do](button);
    });
    form.node.addEventListener("submit", function (event) { event.preventDefault(); });
    form.node.addEventListener("input", function (event) {
      if (!event.target.name) return;
      if (event.target.name === "model" && event.target.value) form.node.elements.config.value = "";
      fromForm(event.target.type === "text" ? event.target : null);
    });
    form.node.addEventListener("change", function () { typing = null; });
    addEventListener("popstate", fromAddress);
    fromAddress();
    keepLanguage(location.search || (location.hash.slice(0, 2) === "#?" ? location.hash.slice(1) : ""));
  }

  function missing(read) { return !read.keys.model && !read.keys.config; }
  function unanswered(places, read) {
    places.result.className = "vg-calc__answer";
    places.answer.textContent = missing(read) ? say("problem.no_model") : say("problem.impossible");
    places.peak.textContent = "";
  }
  function answer(places, result, wrong) {
    places.result.className = "vg-calc__answer" + (wrong ? "" : " vg-calc__answer--" + result.verdict);
    places.answer.textContent = (wrong ? say("problem.without") + " " : "") + result.answer + " ";
    places.peak.textContent = result.peak + " (" + result.other + ")";
  }

  function small(root) {
    var form = Form(root), places = {};
    var given = Array.from(new URLSearchParams(root.dataset.start).entries());
    root.querySelectorAll("[data-part]").forEach(function (node) { places[node.dataset.part] = node; });
    form.node.hidden = false;
    root.querySelector(".vg-calc__way").hidden = true;
    function pairs() {
      var mine = form.pairs(), names = Array.prototype.map.call(form.node.elements, function (field) { return field.name; });
      return mine.concat(given.filter(function (pair) { return names.indexOf(pair[0]) < 0; }));
    }
    form.node.addEventListener("input", function () {
      var read = understand(pairs());
      root.querySelectorAll(".vg-field__error").forEach(function (place) { place.hidden = true; });
      read.problems.forEach(function (problem) {
        var at = form.field(problem.name);
        if (!at) return;
        at.querySelector(".vg-field__error").textContent = problem.name === "model" && form.several() ? say("problem.several") : problem.text;
        at.querySelector(".vg-field__error").hidden = false;
      });
      if (!read.sentence) answer(places, guide.result_texts(words, read.keys, read.unit), read.problems.length > 0);
      else unanswered(places, read);
      places.way.search = addressOf(pairsOf(read.keys));
    });
    form.node.addEventListener("submit", function (event) {
      event.preventDefault();
      location.href = places.way.href;
    });
  }

  document.querySelectorAll(".vg-calculator").forEach(function (root) {
    (root.dataset.kind === "small" ? small : whole)(root);
  });
})();
