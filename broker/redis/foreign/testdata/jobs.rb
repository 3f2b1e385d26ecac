# A job of Sidekiq that fails until the key fixed is there.
require "sidekiq"
Sidekiq.configure_server { |c| c.redis = { url: ENV["REDIS_URL"] } }
Sidekiq.configure_client { |c| c.redis = { url: ENV["REDIS_URL"] } }

class Mail
  include Sidekiq::Worker
  sidekiq_options queue: "mails", retry: 0, backtrace: true
  def perform(n)
    raise ArgumentError, "boom #{n}" unless Sidekiq.redis { |c| c.get("fixed") }
    Sidekiq.redis { |c| c.rpush("done", n) }
  end
end

Mail.perform_async(7) if ARGV[0] == "enqueue"
