// Orders joined with customers, counted and summed by city, in @tanstack/db-ivm. Usage: node db_ivm.mjs PACKAGE INPUT
// INPUT is JSON: customers [id, city], orders [id, customer, amount], and the size of a batch. Customers come first, then
// orders in batches, which are timed. Prints JSON: wall and CPU seconds, and the rows of the view.
import { readFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'

const [, , modulePath, inputPath] = process.argv
const { D2, MultiSet, map, join, groupBy, groupByOperators, output } = await import(pathToFileURL(modulePath))
const { customers, orders, size } = JSON.parse(readFileSync(inputPath, 'utf8'))

const rows = new Map()
const graph = new D2()
const customerInput = graph.newInput()
const orderInput = graph.newInput()
orderInput.pipe(
  join(customerInput, 'inner'),
  map(([, [order, customer]]) => ({ city: customer.city, amount: order.amount })),
  groupBy((row) => ({ city: row.city }), { n: groupByOperators.count(), total: groupByOperators.sum((row) => row.amount) }),
  output((changes) => {
    for (const [[, row], weight] of changes.getInner()) {
      const key = JSON.stringify([row.city, row.n, row.total])
      const left = (rows.get(key) ?? 0) + weight
      if (left) rows.set(key, left)
      else rows.delete(key)
    }
  }),
)
graph.finalize()
customerInput.sendData(new MultiSet(customers.map(([id, city]) => [[id, { id, city }], 1])))
graph.run()

const batches = []
for (let at = 0; at < orders.length; at += size) {
  batches.push(orders.slice(at, at + size).map(([id, customer, amount]) => [[customer, { id, amount }], 1]))
}
const cpu = process.cpuUsage()
const start = process.hrtime.bigint()
for (const batch of batches) {
  orderInput.sendData(new MultiSet(batch))
  graph.run()
}
const wall = Number(process.hrtime.bigint() - start) / 1e9
const used = process.cpuUsage(cpu)
const kept = [...rows.keys()].map((key) => JSON.parse(key))
console.log(JSON.stringify({ wall, cpu: (used.user + used.system) / 1e6, rows: kept }))
