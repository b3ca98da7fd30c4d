// What Python's operators, builtins and containers mean in the translated estimator; portable.py puts it before the code.
// Every helper throws a TypeError where Python would: JavaScript must not turn a wrong type into a wrong figure.
let $, $last = 0;
const $CHECKED = false;
const $keys = new WeakMap();
class ValueError extends Error {
  name = "ValueError";
}
const $bad = what => { throw new TypeError(what); };
const $num = (a, b) => typeof a === "number" && typeof b === "number";
const $int = x => {
  if ($CHECKED && Number.isInteger(x) && !Number.isSafeInteger(x)) throw new RangeError(`${x} is above 2^53`);
  return x;
};

// A tuple is an array with a mark, a list one without (frozen arrays are slow to copy in V8).
const $mark = items => {
  items.tuple = true;
  return items;
};
const $t = (...items) => $mark(items);
const $array = x => Array.isArray(x) ? x : $bad("not a list");
const $tuple = x => Array.isArray(x) && x.tuple ? x : $mark($list(x));
const $list = x => Array.from(x instanceof $Set ? x.keys() : $iter(x));
const $like = (x, items) => x.tuple ? $mark(items) : items;
const $free = x => Array.isArray(x) && !x.tuple ? x : $bad("not a list");

// A dictionary: keys are compared as Python compares them, so tuples and frozen dataclasses can be keys.
// The fields by which objects are equal: all of a dataclass, unless some are said; 0 or nothing, and each object is itself.
const $compares = x => x?.constructor.$compared ?? x?.constructor.$fields;
const $key = x => {
  if (x === null || typeof x !== "object") return x === undefined ? $bad("key") : typeof x === "boolean" ? +x : x;
  if (Array.isArray(x)) return x.tuple ? "\0[" + x.map($part).join() : $bad("a list as a key");
  const fields = $compares(x);
  if (!fields) return x instanceof $Dict ? $bad("a dict as a key") : x;
  if (!Object.isFrozen(x)) $bad("an object that can change as a key");
  let key = $keys.get(x);
  if (key === undefined) $keys.set(x, key = "\0" + x.constructor.name + fields.map(f => $part(x[f])).join());
  return key;
};
const $part = x => {
  const key = $key(x);
  return key !== null && typeof key === "object" ? "\0" + $id(key) : JSON.stringify(key);
};
class $Dict {
  constructor(pairs) {
    this.map = new Map();
    for (const [key, value] of pairs) this.set(key, value);
  }
  set(key, value) {
    const k = $key(key), entry = this.map.get(k);
    if (entry) entry[1] = value;
    else this.map.set(k, [key, value]);
  }
  entry(key) { return this.map.get($key(key)); }
  at(key) { return (this.entry(key) ?? $bad("no key " + $repr(key)))[1]; }
  keys() { return Array.from(this.map.values(), entry => entry[0]); }
  delete(key) { return this.map.delete($key(key)); }
}
class $Set extends $Dict {}
const $dict = (pairs = []) => new $Dict(pairs instanceof $Dict ? pairs.map.values() : pairs);
const $set = (items = []) => new $Set($list(items).map(item => [item, true]));
const $fromkeys = items => $dict($iter(items).map(item => [item, null]));

const $iter = x => Array.isArray(x) ? x : typeof x === "string" ? Array.from(x)
  : x instanceof $Set ? $bad("a set has no order") : x instanceof $Dict ? x.keys() : $bad("not iterable");
const $len = x => typeof x === "string" ? Array.from(x).length : x instanceof $Dict ? x.map.size : $array(x).length;
const $true = x => Array.isArray(x) ? x.length > 0 : x instanceof $Dict ? x.map.size > 0 : x === undefined ? $bad("no value") : !!x;

// Arithmetic.
const $add = (a, b) => $num(a, b) ? $int(a + b) : typeof a === "string" && typeof b === "string" ? a + b
  : $array(a).tuple === $array(b).tuple ? $like(a, a.concat(b)) : $bad("list + tuple");
const $grow = (a, b) => {
  if (!Array.isArray(a) || a.tuple) return $add(a, b);
  a.push(...$iter(b));
  return a;
};
const $sub = (a, b) => $num(a, b) ? $int(a - b) : $bad("-");
const $mul = (a, b) => {
  if ($num(a, b)) return $int(a * b);
  if (typeof a === "number") [a, b] = [b, a];
  if (!Number.isInteger(b)) $bad("*");
  if (typeof a === "string") return a.repeat(Math.max(b, 0));
  return $like($array(a), Array.from({ length: Math.max(b, 0) }, () => a).flat());
};
const $fadd = (a, b) => $num(a, b) ? a + b : $bad("+");
const $fsub = (a, b) => $num(a, b) ? a - b : $bad("-");
const $fmul = (a, b) => $num(a, b) ? a * b : $bad("*");
const $div = (a, b) => $num(a, b) && b !== 0 ? a / b : $bad("/");
const $mod = (a, b) => {
  if (!$num(a, b) || b === 0) $bad("%");
  const rest = a % b;
  return rest !== 0 && rest < 0 !== b < 0 ? rest + b : rest;
};
const $floordiv = (a, b) => Math.round((a - $mod(a, b)) / b);
const $pow = (a, b) => {
  if (!Number.isInteger(a) || !Number.isInteger(b) || b < 0) $bad("**");
  let power = 1;
  for (; b > 0; b--) power = $int(power * a);
  return power;
};
const $neg = a => $sub(0, a);

// Comparison.
const $eq = (a, b) => {
  if (a === b) return true;
  if (typeof a !== "object") return (typeof a === "boolean" && typeof b === "number" || $num(a, +b) && typeof b === "boolean") && +a === +b;
  if (Array.isArray(a)) return Array.isArray(b) && a.tuple === b.tuple && a.length === b.length && a.every((x, i) => $eq(x, b[i]));
  if (a instanceof $Dict) return b instanceof $Dict && a.map.size === b.map.size
    && a.keys().every(key => b.entry(key) && $eq(a.at(key), b.at(key)));
  const fields = $compares(a);
  return !!fields && a.constructor === b?.constructor && fields.every(f => $eq(a[f], b[f]));
};
const $order = (a, b) => {
  if ($num(a, b) || typeof a === "string" && typeof b === "string") return a < b ? -1 : a > b ? 1 : 0;
  const shared = Math.min($array(a).length, $array(b).length);
  for (let i = 0; i < shared; i++) if (!$eq(a[i], b[i])) return $order(a[i], b[i]);
  return a.length - b.length;
};
const $lt = (a, b) => $num(a, b) ? a < b : $order(a, b) < 0;
const $le = (a, b) => $num(a, b) ? a <= b : $order(a, b) <= 0;
const $gt = (a, b) => $num(a, b) ? a > b : $order(a, b) > 0;
const $ge = (a, b) => $num(a, b) ? a >= b : $order(a, b) >= 0;
const $in = (x, c) => c instanceof $Dict ? c.entry(x) !== undefined
  : typeof c === "string" ? typeof x === "string" ? c.includes(x) : $bad("in") : $array(c).some(y => $eq(x, y));
const $kinds = {
  bool: x => typeof x === "boolean",
  int: x => Number.isInteger(x) || typeof x === "boolean",
  float: x => typeof x === "number" && !Number.isInteger(x),
  str: x => typeof x === "string",
  list: x => Array.isArray(x) && !x.tuple,
  tuple: x => Array.isArray(x) && !!x.tuple,
  set: x => x instanceof $Set,
  dict: x => x instanceof $Dict && !(x instanceof $Set),
};
const $is = (x, ...kinds) => kinds.some(kind => typeof kind === "string" ? $kinds[kind](x) : x instanceof kind);

// Items and slices.
const $index = (o, k) => {
  const i = Number.isInteger(k) && k < 0 ? k + o.length : k;
  return Number.isInteger(i) && i >= 0 && i < o.length ? i : $bad("no index " + k);
};
const $at = (o, k) => Array.isArray(o) ? o[$index(o, k)] : o instanceof $Dict ? o.at(k) : (o = $iter(o))[$index(o, k)];
const $put = (o, k, v) => { o instanceof $Dict ? o.set(k, v) : $free(o)[$index(o, k)] = v; };
const $change = (o, k, change, v) => $put(o, k, change($at(o, k), v));
const $del = (o, k) => {
  if (!(o instanceof $Dict)) $free(o).splice($index(o, k), 1);
  else if (!o.delete(k)) $bad("no key " + $repr(k));
};
const $slice = (o, from, to, back) => {
  const part = $iter(o).slice(from ?? 0, to ?? undefined);
  if (back) part.reverse();
  return typeof o === "string" ? part.join("") : $like(o, part);
};
const $unpack = (x, length) => (x = $iter(x)).length === length ? x : $bad(`expected ${length} values, got ${x.length}`);

// Builtins.
const $range = (a, b, step = 1) => {
  if (b === undefined) [a, b] = [0, a];
  if (!$num(a, b) || !step) $bad("range");
  const items = [];
  for (let i = a; step > 0 ? i < b : i > b; i += step) items.push(i);
  return items;
};
const $enumerate = (x, start = 0) => $iter(x).map((item, i) => $t(i + start, item));
const $zip = (...x) => $range(Math.min(...x.map($len))).map(i => $t(...x.map(y => $at(y, i))));
const $reversed = x => Array.from($iter(x)).reverse();
const $sorted = (x, key = y => y, reverse = false) =>
  $list(x).sort((a, b) => reverse ? $order(key(b), key(a)) : $order(key(a), key(b)));
// CPython changed how it adds floats up, so only whole numbers have one sum.
const $sum = x => $iter(x).reduce((a, b) => Number.isInteger(b) ? $add(a, b) : $bad("sum of whole numbers only"), 0);
const $best = (better, items, key = y => y, otherwise) => items.length === 0 ? otherwise === undefined ? $bad("of nothing") : otherwise
  : items.reduce((a, b) => better(key(b), key(a)) ? b : a);
const $abs = x => $lt(x, 0) ? -x : x;
const $ceil = x => $num(x, x) ? Math.ceil(x) : $bad("ceil");
const $floor = x => $num(x, x) ? Math.floor(x) : $bad("floor");
const $float = x => $num(x, x) ? x : $bad("float");
const $whole = x => $num(x, x) ? Math.trunc(x) : typeof x === "boolean" ? +x : $bad("int");
const $chr = x => String.fromCodePoint(x);
const $id = x => x.$id ??= ++$last;
const $number = x => {
  if (Number.isInteger(x)) return Number.isSafeInteger(x) ? String(x) : String(BigInt(x));
  const [digits, exponent] = x.toExponential().split("e");
  return exponent < -4 ? `${digits}e-${exponent.slice(1).padStart(2, "0")}` : String(x);
};
const $str = x => typeof x === "string" ? x : $repr(x);
const $repr = x => {
  if (x === null) return "None";
  if (typeof x === "boolean") return x ? "True" : "False";
  if (typeof x === "number") return $number(x);
  if (Array.isArray(x)) {
    const items = x.map($repr).join(", ");
    return x.tuple ? `(${items}${x.length === 1 ? "," : ""})` : `[${items}]`;
  }
  if (x instanceof $Dict) return `{${x.keys().map(key => $repr(key) + ": " + $repr(x.at(key))).join(", ")}}`;
  if (typeof x !== "string") $bad("repr");
  const quote = x.includes("'") && !x.includes('"') ? '"' : "'";
  const names = { "\n": "\\n", "\r": "\\r", "\t": "\\t", "\\": "\\\\", [quote]: "\\" + quote };
  const hex = c => {
    const code = c.codePointAt(0).toString(16);
    return code.length < 3 ? "\\x" + code.padStart(2, "0") : code.length < 5 ? "\\u" + code.padStart(4, "0") : "\\U" + code.padStart(8, "0");
  };
  return quote + Array.from(x, c => names[c] ?? (c !== " " && /[\p{C}\p{Z}]/u.test(c) ? hex(c) : c)).join("") + quote;
};

// Methods of strings, lists, dictionaries and sets; `$call` is for names that a class of the estimator has too.
const $part3 = (s, x, i, otherwise) => $t(...i < 0 ? otherwise : [s.slice(0, i), x, s.slice(i + x.length)]);
const $methods = {
  join: (s, x) => $iter(x).map(y => typeof y === "string" ? y : $bad("join")).join(s),
  startswith: (s, x) => s.startsWith(x),
  endswith: (s, x) => s.endsWith(x),
  removeprefix: (s, x) => s.startsWith(x) ? s.slice(x.length) : s,
  removesuffix: (s, x) => x && s.endsWith(x) ? s.slice(0, -x.length) : s,
  replace: (s, a, b) => s.replaceAll(a, () => b),
  split: (s, x) => s.split(x ?? $bad("split by a text")),
  partition: (s, x) => $part3(s, x, s.indexOf(x), [s, "", ""]),
  rpartition: (s, x) => $part3(s, x, s.lastIndexOf(x), ["", "", s]),
  append: (a, x) => { $free(a).push(x); },
  extend: (a, x) => { $free(a).push(...$iter(x)); },
  count: (a, x) => $array(a).reduce((n, y) => n + $eq(x, y), 0),
  index: (a, x) => {
    const i = $array(a).findIndex(y => $eq(x, y));
    return i < 0 ? $bad("not in the list") : i;
  },
  get: (d, k, otherwise = null) => (d.entry(k) ?? [k, otherwise])[1],
  pop: (d, k, otherwise) => {
    if (Array.isArray(d)) return $free(d).splice($index(d, k ?? -1), 1)[0];
    const entry = d.entry(k);
    d.delete(k);
    return entry ? entry[1] : otherwise === undefined ? $bad("no key " + $repr(k)) : otherwise;
  },
  insert: (a, i, x) => { $free(a).splice(i, 0, x); },
  remove: (a, x) => { $free(a).splice($methods.index(a, x), 1); },
  setdefault: (d, k, v) => {
    if (!d.entry(k)) d.set(k, v);
    return d.at(k);
  },
  update: (d, x) => { for (const key of x.keys()) d.set(key, x.at(key)); },
  keys: d => d.keys(),
  values: d => d.keys().map(key => d.at(key)),
  items: d => d.keys().map(key => $t(key, d.at(key))),
  copy: x => x instanceof $Dict ? $dict(x) : Array.from($array(x)),
  add: (s, x) => { s.set(x, true); },
};
const $call = (o, name, own, ...values) =>
  o === null || typeof o !== "object" || Array.isArray(o) || o instanceof $Dict ? $methods[name](o, ...values) : o[own](...values);
const $bind = (o, name) => (o.$bound ??= {})[name] ??= o[name].bind(o);
const $replace = (o, changes) => new o.constructor(...o.constructor.$fields.map(f => Object.hasOwn(changes, f) ? changes[f] : o[f]));
const $fields = names => names.map(name => ({ name }));

// The boundary: plain objects in, plain objects out.
const $plain = x => x !== null && typeof x === "object" && Object.getPrototypeOf(Object.getPrototypeOf(x) ?? {}) === null;
const $in_ = x => Array.isArray(x) ? x.map($in_) : $plain(x) ? $dict(Object.entries(x).map(([key, value]) => [key, $in_(value)])) : x;
const $out = x => Array.isArray(x) ? x.map($out) : x instanceof $Dict ? Object.fromEntries(x.keys().map(key => [key, $out(x.at(key))])) : x;
const $export = f => (...values) => $out(f(...values.map($in_)));
