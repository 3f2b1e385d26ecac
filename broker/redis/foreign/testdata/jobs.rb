# Jobs of Sidekiq that fail until the key fixed is there: jobs.rb enqueue ID NUMBER, retry ID, remove ID.
require "sidekiq"
require "sidekiq/api"
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

act, id, number = ARGV
case act
when "enqueue" then Mail.set("jid" => id).perform_async(Integer(number))
when "retry" then Sidekiq::DeadSet.new.find_job(id).retry
when "remove" then Sidekiq::DeadSet.new.find_job(id).delete
end
