// Where the nodes of a tree go: a tree is as wide as its children side by side or as its own box, and a parent stands
// over the middle of what is below it.

export const CHARACTER = 7.3;
export const BOX = 58;
export const ROW = 88;
const GAP = 14;

export function widthOf(node) {
  const longest = Math.max(node.name.length, node.schema.length, 12);
  return Math.min(longest, 30) * CHARACTER + 22;
}

function below(node) {
  return node.children.reduce((sum, child) => sum + span(child), 0) + GAP * Math.max(0, node.children.length - 1);
}

function span(node) {
  return Math.max(widthOf(node), below(node));
}

/** All nodes of a tree with the middle of their places and their depths, parents first. */
export function placed(root) {
  const found = [];
  function put(node, left, depth, parent) {
    const here = { node, x: left + span(node) / 2, depth, parent };
    found.push(here);
    let start = left + (span(node) - below(node)) / 2;
    for (const child of node.children) {
      put(child, start, depth + 1, here);
      start += span(child) + GAP;
    }
  }
  put(root, 0, 0, null);
  return { nodes: found, width: span(root), height: Math.max(...found.map((each) => each.depth)) * ROW + BOX };
}

/** Nodes without a tree in rows of a given width, those of one kind together. */
export function gridded(nodes, width) {
  const found = [];
  let x = 0;
  let depth = 0;
  let widest = 0;
  nodes.forEach((node, i) => {
    const wide = widthOf(node);
    const breaks = x > 0 && (x + wide > width || node.kind !== nodes[i - 1].kind);
    if (breaks) {
      x = 0;
      depth += 1;
    }
    found.push({ node, x: x + wide / 2, depth: depth * ((BOX + GAP) / ROW), parent: null });
    x += wide + GAP;
    widest = Math.max(widest, x - GAP);
  });
  return { nodes: found, width: widest, height: depth * (BOX + GAP) + BOX };
}
