// Charges orders. Each hundredth order has no card, and can never be charged.
const nixie = require("nixie");

let charged = 0;

nixie
  .work((message) => {
    const order = message.json();
    if (order.n % 100 === 98) {
      throw nixie.bury(`order ${order.n} has no card`, { reason: "validation" });
    }
    charged++;
    if (order.receipt) message.follow("receipts", { order: order.n });
  })
  .then(() => console.error("charged", charged, "orders"));
