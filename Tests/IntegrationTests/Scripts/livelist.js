// A live query as arrays, with nothing but EventSource: liveList(path) gives an object whose `sections` are kept up to
// date. A list without sections is one section without a name.
function liveList(path) {
  const list = {path, sections: [], isSectioned: false, id: "", errors: []};
  const source = new EventSource(path);
  const handle = (name, apply) => source.addEventListener(name, event => {
    try {
      apply(JSON.parse(event.data));
    } catch (error) {
      list.errors.push(`${name} ${event.lastEventId}: ${error.message}`);
    }
    list.id = event.lastEventId;
  });
  const check = (holds, what) => {
    if (!holds) throw new Error("contradicts the list: " + JSON.stringify(what));
  };
  const place = index => list.isSectioned ? index : [0, index];
  const by = key => (a, b) => place(a[key])[0] - place(b[key])[0] || place(a[key])[1] - place(b[key])[1];
  handle("results", data => {
    let start = 0;
    list.isSectioned = data.sections !== undefined;
    list.sections = (data.sections ?? [{count: data.count}]).map(section => (
      {name: section.name, rows: data.objects.slice(start, start += section.count)}));
  });
  handle("content", data => {
    const changes = (...types) => data.changes.filter(change => types.includes(change.type));
    const sections = type => (data.sectionChanges ?? []).filter(change => change.type === type);
    for (const change of changes("delete", "move").sort(by("index")).reverse()) {
      const [section, row] = place(change.index);
      check(list.sections[section].rows.splice(row, 1)[0]["@ref"] === change.object, change);
    }
    for (const change of sections("delete").sort((a, b) => b.index - a.index)) {
      const [gone] = list.sections.splice(change.index, 1);
      check(gone.name === change.name && gone.rows.length === 0, change);
    }
    for (const change of sections("insert").sort((a, b) => a.newIndex - b.newIndex)) {
      list.sections.splice(change.newIndex, 0, {name: change.name, rows: []});
    }
    for (const change of changes("insert", "move").sort(by("newIndex"))) {
      const [section, row] = place(change.newIndex);
      check(row <= list.sections[section].rows.length, change);
      list.sections[section].rows.splice(row, 0, change.value);
    }
    for (const change of changes("update")) {
      const [section, row] = place(change.newIndex);
      check(list.sections[section].rows[row]["@ref"] === change.object, change);
      list.sections[section].rows[row] = change.value;
    }
    check(list.sections.reduce((count, section) => count + section.rows.length, 0) === data.count, {count: data.count});
  });
  for (const name of ["reset", "heartbeat", "bye"]) handle(name, () => {});
  source.addEventListener("error", () => {
    if (source.readyState === EventSource.CLOSED) list.errors.push("the stream was refused");
  });
  return list;
}
