"""Makes readable text from a JSON Schema: every key with its kind, its meaning, its default and the default's source."""

import html
import re

# Kind of a quantity, by a part of its pattern.
KINDS = [("ps|ns|us", "time"), ("bps", "rate"), ("KiB", "size"), ("kB", "size"), ("KMGT", "size")]


def inline(text: str) -> str:
    """Turns one line of Markdown into HTML: code spans and escaped characters."""
    text = html.escape(" ".join(text.split()), quote=False)
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", text)


def resolve(root: dict, of: dict) -> dict:
    """Follows references, and takes the first part of a choice `X or null`."""
    while True:
        ref = of.get("$ref") or of.get("allOf", [{}])[0].get("$ref")
        if ref:
            of = root["definitions"][ref.rpartition("/")[2]]
            continue
        options = [o for o in of.get("anyOf", []) if o.get("type") != "null"]
        if len(options) == 1:
            of = options[0]
            continue
        return of


def choices(of: dict) -> list[dict]:
    """Alternatives of a value; empty if it has none."""
    return [o for o in of.get("oneOf") or of.get("anyOf") or [] if o.get("type") != "null"]


def tagged(option: dict) -> str | None:
    """Name of an alternative of the form `[some.NAME]`, or None."""
    names = list(option.get("properties", {}))
    return names[0] if len(names) == 1 and option.get("required") == names else None


def options(root: dict, path: str) -> list[tuple[str, str]]:
    """Names and descriptions of the alternatives of a key such as `scheme`."""
    found = [(tagged(o), o.get("description", "")) for o in choices(resolve(root, at(root, path)))]
    return [(name, about) for name, about in found if name]


def at(root: dict, path: str) -> dict:
    """Schema of a dotted path, through lists and alternatives."""
    here = root
    for step in path.split("."):
        here = resolve(root, here)
        here = resolve(root, here.get("items", here))
        props = here.get("properties", {})
        if step not in props:
            props = next((o["properties"] for o in choices(here) if step in o.get("properties", {})), {})
        if step not in props:
            if isinstance(here.get("additionalProperties"), dict):
                here = here["additionalProperties"]
                continue
            raise SystemExit(f"a scenario has no {path!r}: there is no key {step!r}")
        here = props[step]
    return here


def toml(value) -> str:
    """Writes a value as TOML."""
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return f'"{value}"'
        case list():
            return "[" + ", ".join(map(toml, value)) + "]"
        case dict():
            pairs = ", ".join(f"{k} = {toml(v)}" for k, v in value.items() if v is not None)
            return f"{{ {pairs} }}" if pairs else "{}"
        case _:
            return str(value)


def kind(root: dict, of: dict) -> str:
    """Kind of a value, in a word or two."""
    base = of if "type" in of or "pattern" in of else resolve(root, of)
    types = base.get("type", [])
    types = [t for t in ([types] if isinstance(types, str) else types) if t != "null"]
    pattern = base.get("pattern", "")
    if pattern:
        return next((name for part, name in KINDS if part in pattern), "text")
    if types == ["array"]:
        return "list"
    if types == ["object"]:
        return "table"
    if types in (["integer"], ["number"]):
        least, most = base.get("minimum"), base.get("maximum")
        word = "whole number" if types == ["integer"] else "number"
        return f"{word}, {least} to {most}" if least is not None and most is not None and most < 10**9 else word
    if types == ["boolean"]:
        return "true or false"
    return "choice" if choices(base) else "text"


def split_default(text: str) -> tuple[str, str]:
    """Splits a description before its sentence about the default."""
    found = re.search(r"(?:^|(?<=[.)] ))Defaults?:? ", " ".join(text.split()))
    text = " ".join(text.split())
    return (text[: found.start()].strip(), text[found.start() :]) if found else (text, "")


def table_in(root: dict, of: dict) -> dict:
    """The table that a value is, or can be (as in `"off"` or a table of settings)."""
    of = resolve(root, of)
    of = resolve(root, of.get("items", of))
    tables = [resolve(root, o) for o in choices(of) if not tagged(o)]
    tables = [t for t in tables if t.get("properties")]
    return tables[0] if len(tables) == 1 and not of.get("properties") else of


def has_keys(root: dict, of: dict) -> bool:
    """True for a table with keys, and for a choice among such tables."""
    of = table_in(root, of)
    return bool(of.get("properties")) or any(tagged(o) and "$ref" in o["properties"][tagged(o)] for o in choices(of))


def entry(root: dict, key: str, of: dict, required: bool, link: str | None) -> str:
    """List entry of one key."""
    about, default = split_default(of.get("description") or resolve(root, of).get("description", ""))
    notes = kind(root, of) + (", required" if required else "")
    term = f'<a href="#{link}"><code>{key}</code></a>' if link else f"<code>{key}</code>"
    text = f"<p>{inline(about)}</p>" if about else ""
    named = [choice(root, o) for o in choices(resolve(root, of)) if not link or "const" in o or o.get("enum")]
    if any(named):
        text += "<ul>" + "".join(f"<li>{n}</li>" for n in named if n) + "</ul>"
    if default:
        text += f'<p class="default">{inline(default)}</p>'
    elif "default" in of and of["default"] is not None and not link:
        text += f'<p class="default">Default <code>{html.escape(toml(of["default"]), quote=False)}</code>.</p>'
    return f'<dt>{term} <span class="kind">{notes}</span></dt><dd>{text}</dd>'


def choice(root: dict, option: dict) -> str:
    """Text of one alternative of a value."""
    about = option.get("description", "")
    if "const" in option:
        name = toml(option["const"])
    elif option.get("enum"):
        name = ", ".join(map(toml, option["enum"]))
    elif tag := tagged(option):
        inner = option["properties"][tag]
        name = f"{{ {tag} = {kind(root, inner)} }}"
    elif props := resolve(root, option).get("properties"):
        name = "{ " + ", ".join(f"{k} = {kind(root, v)}" for k, v in props.items()) + " }"
        about = about or resolve(root, option).get("description", "")
    elif consts := [o["const"] for o in choices(resolve(root, option)) if "const" in o]:
        name = ", ".join(map(toml, consts))
    else:
        name = ""
        about = about or kind(root, option)
    code = f"<code>{html.escape(name, quote=False)}</code>" if name else ""
    return f"{code}{': ' if code and about else ''}{inline(about)}"


def keys(root: dict, of: dict, prefix: str = "", linked: bool = True) -> str:
    """List of the keys of a table."""
    of = table_in(root, of)
    required = of.get("required", [])
    rows = []
    for key, value in of.get("properties", {}).items():
        key = written(key)
        link = anchor(f"{prefix}.{key}" if prefix else key) if linked and has_keys(root, value) else None
        rows.append(entry(root, key, value, key in required, link))
    return '<dl class="keys">\n' + "\n".join(rows) + "\n</dl>" if rows else "<p>Nothing to set.</p>"


def heading(level: int, code: str, name: str) -> str:
    """A heading in code, with a name that links can use on every code host."""
    return f'<a id="{name}"></a>\n\n{"#" * level} `{code}`'


def anchor(path: str) -> str:
    return path.replace(".", "-").replace('"*"', "others")


def written(key: str) -> str:
    """A key as TOML has it."""
    return key if re.fullmatch(r"[\w-]+", key) else f'"{key}"'


def section(root: dict, path: str) -> str:
    """Section with the settings of one table and of the tables inside it."""
    of = resolve(root, at(root, path))
    text = [lead(of, path), keys(root, of, path)]
    for key, value in of.get("properties", {}).items():
        if has_keys(root, value):
            text += [f"<h3 id=\"{anchor(f'{path}.{key}')}\"><code>[{path}.{key}]</code></h3>", keys(root, value, linked=False)]
    return "\n\n".join(text)


def lead(of: dict, path: str) -> str:
    """First line of a section: the table's name and the rest of its description."""
    about = re.sub(r"^`\[+[^`]*\]+`(, or `[^`]*`)?[:.]? ?", "", " ".join(of.get("description", "").split()))
    about = about.removeprefix("nothing to set.").strip()
    return f"Set in `[{path}]`." + (f" {about[:1].upper()}{about[1:]}" if about else "")


class Reference:
    """The reference of a schema on several pages. A table that occurs in several places is described in the first one; the
    others link to it."""

    def __init__(self, root: dict, pages: dict[str, list[str]], guides: dict[str, str]) -> None:
        """`pages` gives the keys at the top level that each page describes, and `guides` the guide that lists a table's keys."""
        self.root = root
        self.guides = guides
        self.pages = {key: page for page, keys in pages.items() for key in keys}
        described = [key for keys in pages.values() for key in keys]
        if wrong := [key for key in root["properties"] if described.count(key) != 1] + [
            key for key in described if key not in root["properties"]
        ]:
            raise SystemExit(f"each key of a scenario must be on one page; check {', '.join(wrong)} in {', '.join(pages)}")
        # Place of each table that has a name in the schema: its path.
        self.homes = {name: key for key, value in root["properties"].items() if (name := definition(value))}
        self.texts = {key: self.top(key, value) for key, value in root["properties"].items()}

    def table(self) -> list[tuple[str, str, str]]:
        """Every key at the top level with its page and the first sentence about it."""
        rows = []
        for key, value in self.root["properties"].items():
            about = " ".join((value.get("description") or resolve(self.root, value).get("description", "")).split())
            rows.append((key, self.pages[key], split_default(about)[0].partition(". ")[0].rstrip(".") + "."))
        return rows

    def top(self, key: str, value: dict) -> str:
        """Text of a key at the top level: a chapter if it is a table."""
        if has_keys(self.root, value) or resolve(self.root, value).get("additionalProperties"):
            return self.chapter(key, value, 2)
        listed = entry(self.root, key, value, key in self.root.get("required", []), None)
        return f'{heading(2, key, anchor(key))}\n\n<dl class="keys">\n{listed}\n</dl>'

    def chapter(self, path: str, of: dict, level: int, of_list: str = "") -> str:
        """Chapter of a table and the tables inside it. `of_list` is the list of tables that contains it."""
        name = definition(of)
        home = self.homes.setdefault(name, path) if name else path
        if home != path:
            return self.repeated(path, home, level, of_list)
        return self.described(path, of, level, of_list)

    def repeated(self, path: str, home: str, level: int, of_list: str) -> str:
        """Chapter of a table whose keys another chapter describes."""
        head = heading(min(level, 5), title(path, of_list, False), anchor(path))
        here, there = (self.pages[p.partition(".")[0]] for p in (path, home))
        to = ("" if here == there else there) + f"#{anchor(home)}"
        return f"{head}\n\nIt has the keys of [`{home}`]({to})."

    def described(self, path: str, of: dict, level: int, of_list: str) -> str:
        """Chapter of a table with all its keys."""
        root = self.root
        listed = "items" in resolve(root, of)
        inner = table_in(root, of)
        here = anchor(path)
        if isinstance(inner.get("additionalProperties"), dict) and not inner.get("properties"):
            path, inner = f"{path}.NAME", resolve(root, inner["additionalProperties"])
        name = title(path, of_list, listed)
        of_list = of_list or (path if listed else "")
        about = " ".join((of.get("description") or inner.get("description", "")).split())
        parts = [heading(min(level, 5), name, here), about]
        if inner.get("properties"):
            parts.append(keys(root, inner, path))
        for key, value in inner.get("properties", {}).items():
            if has_keys(root, value):
                parts.append(self.chapter(f"{path}.{written(key)}", value, level + 1, of_list))
        for option in choices(inner):
            tag = tagged(option)
            if not tag:
                continue
            value = option["properties"][tag]
            table = f"{path}.{tag}"
            text = " ".join((option.get("description") or resolve(root, value).get("description", "")).split())
            parts += [heading(min(level + 1, 5), title(table, of_list, False), anchor(table)), text]
            if guide := self.guides.get(table):
                parts.append(f"[Its page]({guide}) lists its keys.")
                continue
            parts.append(keys(root, value, table))
            for key, deeper in resolve(root, value).get("properties", {}).items():
                if has_keys(root, deeper):
                    parts.append(self.chapter(f"{table}.{key}", deeper, level + 2, of_list))
        return "\n\n".join(p for p in parts if p)


def title(path: str, of_list: str, listed: bool) -> str:
    """A table as TOML has it; `of_list` is the list of tables that contains it."""
    if of_list:
        return f"[[{of_list}]] {path.removeprefix(of_list + '.')} = {'[ ... ]' if listed else '{ ... }'}"
    return f"[[{path}]]" if listed else f"[{path}]"


def definition(of: dict) -> str | None:
    """Name of a table in the schema, or None if it has none. Lists are not looked into."""
    ref = of.get("$ref") or of.get("allOf", [{}])[0].get("$ref")
    if ref:
        return ref.rpartition("/")[2]
    options = [o for o in of.get("anyOf", []) if o.get("type") != "null"]
    return definition(options[0]) if len(options) == 1 else None


def summary(root: dict) -> str:
    """Keys of summary.json, with a list for every object."""
    parts, done = [], set()

    def walk(name: str, of: dict) -> None:
        rows, deeper = [], []
        for key, value in of["properties"].items():
            inner = resolve(root, value)
            extra = inner.get("additionalProperties")
            step = key
            if isinstance(extra, dict) and ("$ref" in extra or "properties" in extra):
                inner, step = resolve(root, extra), f"{key}.NAME"
            note = "table" if inner.get("properties") else json_kind(value)
            about = " ".join((value.get("description") or inner.get("description", "")).split())
            rows.append(f"| `{key}` | {note} | {about} |")
            if inner.get("properties"):
                deeper.append((f"{name}.{step}" if name else step, inner))
        head = "| key | kind | meaning |\n|---|---|---|\n"
        parts.append(f"### `{name or 'summary.json'}`\n\n" + head + "\n".join(rows))
        for path, inner in deeper:
            if inner.get("title", id(inner)) not in done and id(inner) not in done:
                done.add(id(inner))
                walk(path, inner)

    walk("", root)
    return "\n\n".join(parts)


def json_kind(of: dict) -> str:
    types = of.get("type", [])
    types = [types] if isinstance(types, str) else types
    words = {"integer": "count", "number": "number", "string": "text", "boolean": "true or false", "array": "list"}
    said = [words.get(t, "table") for t in types if t != "null"]
    return " or ".join(said + (["null"] if "null" in types else []))
